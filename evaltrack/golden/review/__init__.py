"""A person makes a golden set right: what one sees of a question, and what each action changes in the file."""
