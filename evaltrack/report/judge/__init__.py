"""What is said of a judge: agreement, repeatability, and the rubric it goes by."""
