"""What `evaltrack init` writes: the plan of a project's files, and the texts that they begin with."""
