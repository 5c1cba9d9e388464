"""The only door to OpenAI-compatible servers: `client` asks, `throttle` decides how fast."""

from evaltrack.llm.client import LLM, Answer, AnswerError, QuotaError, Schema, ServerRefusesError, has_server

__all__ = ["LLM", "Answer", "AnswerError", "QuotaError", "Schema", "ServerRefusesError", "has_server"]
