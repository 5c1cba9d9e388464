"""`endpoints:/NAME`: an endpoint of an MLflow server's AI gateway, asked once, without sources, as `openai:` does.

The server is that of the run, else the one that the setting `store` names. It holds the keys of the providers: none of
them is needed here. It is logged in to with MLflow's own variables.
"""

from __future__ import annotations

from evaltrack.errors import UsageError
from evaltrack.llm.server import NO_KEY, ModelServer
from evaltrack.privacy.addresses import shown_text
from evaltrack.targets.openai import OpenAITarget, sampling_of


def open_endpoint(place: str, settings: dict[str, str]) -> OpenAITarget:
    """The endpoint called `place`. Settings: those of `openai:`, and `store`.

    Raises:
        UsageError: the store is no server, or a setting is wrong.
        TrackingError: the server does not answer.
    """
    name, store = place.removeprefix("/"), settings.pop("store", "")
    if not name or "/" in name:
        raise UsageError(f"target `endpoints:{shown_text(place)}`: write endpoints:/NAME")
    sampling = sampling_of(f"endpoints:/{name}", settings)
    from evaltrack.tracking.gateway import open_gateway

    gateway = open_gateway(store or None)
    variables = "MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    server = ModelServer(gateway.address, NO_KEY, variables, "the endpoints of the server", gateway.authorization)
    return OpenAITarget(name, *sampling, server=server)
