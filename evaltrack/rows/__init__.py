"""A row as columns: the form that is stored, compared and shown, and the way back."""
