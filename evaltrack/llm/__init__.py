"""The only door to OpenAI-compatible servers.

`server` knows the key and where it is sent, `client` asks, and knows how JSON is asked for, `throttle` decides
how fast, `replies` reads what comes back, `refusals` tells what no second try cures.
"""

from evaltrack.llm.client import LLM, WAITING, Schema, strict_schema
from evaltrack.llm.refusals import AccessLostError, QuotaError, ServerBusyError, ServerRefusesError
from evaltrack.llm.replies import Answer, AnswerError
from evaltrack.llm.server import has_server

__all__ = [
    "LLM",
    "WAITING",
    "AccessLostError",
    "Answer",
    "AnswerError",
    "QuotaError",
    "Schema",
    "ServerBusyError",
    "ServerRefusesError",
    "has_server",
    "strict_schema",
]
