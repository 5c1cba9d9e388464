"""Inputs for the readers of foreign data, the readers by area, and the loop that feeds them."""
