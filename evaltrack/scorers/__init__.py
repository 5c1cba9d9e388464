"""Scores of one's own, which stand in every table, report and comparison as those of evaltrack do.

| name | what is scored |
| --- | --- |
| `package.module:function` | your own function, sync or async |
| `exact_match`, `token_f1` | the answer's words against those of the expected answer, as SQuAD defines them |
| `contains` | whether the words of the expected answer stand in the answer |
| `regex:PATTERN` | whether the pattern is found in the answer |
| `json_schema:FILE` | whether the answer is JSON that holds to a schema |

``NAME=`` before any of these gives it another name.
"""

from evaltrack.scorers.declaration import score

__all__ = ["score"]
