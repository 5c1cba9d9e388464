"""The durable loop of an evaluation: plan, ask, keep, resume, stop. It knows no page and no rendering."""
