"""The only door to OpenAI-compatible servers.

`server` knows the key and where it is sent, `client` asks, `throttle` decides how fast, `replies` reads what comes
back, `refusals` tells what no second try cures.
"""

from evaltrack.llm.client import LLM, Schema
from evaltrack.llm.refusals import BusyError, QuotaError, ServerRefusesError
from evaltrack.llm.replies import Answer, AnswerError
from evaltrack.llm.server import has_server

__all__ = ["LLM", "Answer", "AnswerError", "BusyError", "QuotaError", "Schema", "ServerRefusesError", "has_server"]
