"""What a user can do, a file for each verb; the command line and the server are thin over it."""
