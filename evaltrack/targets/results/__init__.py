"""Results that other tools recorded, and rows of earlier runs, as a target.

`files` reads rows out of a file, `forms` tells by their columns which tool wrote them, one module a tool reads a row as
a `Result`, `paired` finds the result of each question.
"""
