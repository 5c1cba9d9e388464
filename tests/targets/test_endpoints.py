"""Endpoints of the AI gateway of a real MLflow server, whose provider is an OpenAI server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow.entities import GatewayEndpointModelConfig, GatewayModelLinkageType
from mlflow.store.tracking.rest_store import RestStore
from mlflow.utils.credentials import get_default_host_creds

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.judges.server import ModelServer, ServerRefusesError
from evaltrack.records import Question
from evaltrack.targets import open_target
from evaltrack.targets.openai import OpenAITarget, Sampling
from evaltrack.tracking.server import CHAT_PATH, open_gateway
from tests.actors import asked
from tests.conftest import few_questions
from tests.files import data
from tests.mlflow_server import MlflowServer
from tests.openai_behaviours import Reply, Usage
from tests.openai_server import OpenAIServer

QUESTION = Question(id="1", question="Where does the kea live?", domain="d")


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    """What the endpoint asks; it wants the key that only the gateway has."""
    with OpenAIServer(lambda *_: Reply("In New Zealand.", usage=Usage(7, 5)), api_key="of-the-provider") as running:
        yield running


@pytest.fixture(scope="module")
def gateway(provider: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the endpoint `birds`."""
    folder = tmp_path_factory.mktemp("gateway")
    env = {
        "MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS": "true",
        "MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES": "http",
        "MLFLOW_CRYPTO_KEK_PASSPHRASE": "of this test",
    }
    with MlflowServer(folder, env=env) as process:
        process.wait_until_ready()
        store = RestStore(lambda: get_default_host_creds(process.address))
        secret = store.create_gateway_secret(
            "key", {"api_key": "of-the-provider"}, provider="openai", auth_config={"api_base": provider.base_url}
        )
        model = store.create_gateway_model_definition("kea", secret.secret_id, "openai", "gpt-4o-mini")
        linked = GatewayEndpointModelConfig(model.model_definition_id, GatewayModelLinkageType.PRIMARY)
        store.create_gateway_endpoint("birds", [linked])
        yield process.address


def test_a_run_asks_the_gateway_of_its_own_server(
    gateway: str, provider: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither key nor address of a provider is needed here; an endpoint that is not there is named."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    golden, shared = few_questions(tmp_path, 2), {"judge": "none", "traces": "off", "tracking_uri": gateway}
    result = run_eval(golden, target="endpoints:/birds?system=Be short.", **shared)
    assert [row["answer"] for row in result.rows] == ["In New Zealand."] * 2
    assert result.metrics["num_tokens"] == 12
    body = provider.bodies[-1]
    assert body["model"] == "gpt-4o-mini"
    assert body["messages"][0] == {"role": "system", "content": "Be short."}
    with pytest.raises(ServerRefusesError, match=f"no model `brids` at {gateway}{CHAT_PATH} .*check its name"):
        asked(open_target("endpoints:/brids", {"store": gateway}), QUESTION, close=True)


def test_a_store_without_a_gateway(store_uri: str) -> None:
    with pytest.raises(UsageError, match=r"gateway of a server, and the store is sqlite:.*MLFLOW_TRACKING_URI"):
        open_target("endpoints:/birds", store_uri=store_uri)


@pytest.mark.parametrize(("variables", "authorization"), data("targets.json")["logins"])
def test_the_login_is_that_of_mlflow(
    server: str, variables: dict[str, str], authorization: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    opened = open_gateway(server)
    assert opened.authorization == authorization
    assert "secret" not in repr(opened)


def test_a_login_is_sent_in_the_place_of_the_key(provider: OpenAIServer) -> None:
    server = ModelServer(provider.base_url, "none", authorization="Bearer of-the-provider")
    assert asked(OpenAITarget("m", Sampling(), server), QUESTION, close=True).answer == "In New Zealand."
