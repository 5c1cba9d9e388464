"""The evaluation loop: plans, asks, stores rows, resumes and stops. It renders nothing."""
