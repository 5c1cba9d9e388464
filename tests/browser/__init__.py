"""What a person sees in a real headless Chromium."""
