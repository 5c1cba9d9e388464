"""Keys in 100 common forms, made at run time: none of them stands in a file, and none was ever issued."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Iterator
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

LOWER = ascii_lowercase + digits
UPPER = ascii_uppercase + digits
MIXED = ascii_letters + digits
HEX = "0123456789abcdef"
URL_SAFE = MIXED + "-_"


class _Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, count: int, letters: str = MIXED) -> str:
        made = "".join(self._random.choices(letters, k=count - 2))
        return made[: count // 2] + letters[-1] + made[count // 2 :] + letters[0]  # one of each end: digits too

    def uuid(self) -> str:
        return "-".join(self(count, HEX) for count in (8, 4, 4, 4, 12))

    def jwt(self) -> str:
        parts = [b64encode(b'{"alg":"HS256"}'), b64encode(b'{"sub":"' + self(9).encode() + b'"}')]
        return ".".join([*(part.decode().rstrip("=") for part in parts), self(43, MIXED)])

    def pem(self, kind: str) -> str:
        body = "\n".join(self(64, MIXED + "+/") for _ in range(4))
        return f"-----BEGIN {kind}PRIVATE " + f"KEY-----\n{body}\n-----END {kind}PRIVATE " + "KEY-----"


def keys(seed: int = 7) -> dict[str, tuple[str, str]]:
    """Each form by its name: the text it stands in, and the part of it that must not be seen."""
    made = {}
    for name, secret in _alone(_Maker(seed)):
        made[name] = (f"Use {secret} for it.", secret)
    for name, text, secret in _named(_Maker(seed + 1)):
        made[name] = (f"Set {text} and go on.", secret)
    return made


def _alone(new: _Maker) -> Iterator[tuple[str, str]]:
    """Keys that are known by their own form."""
    yield "AWS access key id", "AKIA" + new(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    yield "AWS temporary key id", "ASIA" + new(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    yield "AWS Bedrock", "ABSK" + new(128)
    yield "Google API key", "AIza" + new(35, URL_SAFE)
    yield "Google OAuth secret", "GOCSPX-" + new(28)
    yield "Google access token", "ya29." + new(80, URL_SAFE)
    yield "Azure client secret", new(3) + "8Q~" + new(33)
    yield "Azure DevOps token", new(76) + "AZDO" + new(4)
    yield "Alibaba", "LTAI" + new(20)
    for kind, what in zip("pousr", ("personal", "OAuth", "user", "server", "refresh"), strict=True):
        yield f"GitHub {what}", f"gh{kind}_" + new(36)
    yield "GitHub fine-grained", "github_pat_" + new(22) + "_" + new(59)
    for kind in ("glpat", "gldt", "glptt", "glrt", "glsoat"):
        yield f"GitLab {kind}", f"{kind}-" + new(40 if kind == "glptt" else 20, HEX if kind == "glptt" else MIXED)
    yield "Slack bot", "xoxb-" + new(12, digits) + "-" + new(12, digits) + "-" + new(24)
    yield "Slack user", "xoxp-" + "-".join(new(12, digits) for _ in range(3)) + "-" + new(32, HEX)
    yield "Slack app", "xapp-1-" + new(11, UPPER) + "-" + new(13, digits) + "-" + new(64, HEX)
    yield "Slack webhook", "https://hooks.slack.com/" + f"services/T{new(8, UPPER)}/B{new(8, UPPER)}/{new(24)}"
    yield "Stripe live", "sk_live_" + new(24)
    yield "Stripe restricted", "rk_live_" + new(24)
    yield "Stripe webhook", "whsec_" + new(32)
    yield "Twilio API key", "SK" + new(32, HEX)
    yield "SendGrid", "SG." + new(22) + "." + new(43)
    yield "npm", "npm_" + new(36)
    yield "PyPI", "pypi-AgEIcHlwaS5vcmc" + new(100, URL_SAFE)
    yield "RubyGems", "rubygems_" + new(48, HEX)
    yield "crates.io", "cio" + new(32)
    yield "NuGet", "oy2" + new(43, LOWER)
    yield "Docker Hub", "dckr_pat_" + new(27)
    yield "Hugging Face", "hf_" + new(34, ascii_letters)
    yield "Anthropic", "sk-ant-api03-" + new(93, URL_SAFE) + "AA"
    yield "Anthropic admin", "sk-ant-admin01-" + new(93, URL_SAFE) + "AA"
    yield "Anthropic OAuth", "sk-ant-oat01-" + new(93, URL_SAFE) + "AA"
    yield "OpenAI old", "sk-" + new(20) + "T3Blbk" + "FJ" + new(20)
    yield "OpenAI project", "sk-proj-" + new(74, URL_SAFE) + "T3Blbk" + "FJ" + new(74, URL_SAFE)
    yield "OpenAI service account", "sk-svcacct-" + new(74, URL_SAFE) + "T3Blbk" + "FJ" + new(74, URL_SAFE)
    yield "OpenAI admin", "sk-admin-" + new(74, URL_SAFE) + "T3Blbk" + "FJ" + new(74, URL_SAFE)
    yield "OpenRouter", "sk-or-v1-" + new(64, HEX)
    yield "DeepSeek", "sk-" + new(32, HEX)
    yield "Groq", "gsk_" + new(52)
    yield "xAI", "xai-" + new(80)
    yield "Perplexity", "pplx-" + new(48)
    yield "Replicate", "r8_" + new(37)
    yield "Pinecone", "pcsk_" + new(70)
    yield "LangSmith", "lsv2_pt_" + new(32, HEX) + "_" + new(10, HEX)
    yield "Langfuse", "sk-lf-" + new.uuid()
    yield "NVIDIA", "nvapi-" + new(64, URL_SAFE)
    yield "Tavily", "tvly-dev-" + new(32)
    yield "DigitalOcean", "dop_v1_" + new(64, HEX)
    yield "Shopify admin", "shpat_" + new(32, HEX)
    yield "Shopify shared secret", "shpss_" + new(32, HEX)
    yield "Databricks", "dapi" + new(32, HEX)
    yield "Grafana service account", "glsa_" + new(32) + "_" + new(8, HEX)
    yield "Grafana cloud", "glc_" + new(100)
    yield "Linear", "lin_api_" + new(40)
    yield "Notion", "ntn_" + new(11, digits) + new(35)
    yield "Notion old", "secret_" + new(43)
    yield "Discord bot", "M" + new(25) + "." + new(6) + "." + new(38)
    yield "Discord webhook", "https://discord.com/api/" + "webhooks/" + new(18, digits) + "/" + new(68, URL_SAFE)
    yield "Telegram bot", new(10, digits) + ":AA" + new(33, URL_SAFE)
    yield "Mailgun", "key-" + new(32, HEX)
    yield "Mailchimp", new(32, HEX) + "-us12"
    yield "Brevo", "xkeysib-" + new(64, HEX) + "-" + new(16)
    yield "Square", "sq0atp-" + new(22, MIXED)
    yield "Vault", "hvs." + new(95, URL_SAFE)
    yield "Vault batch", "hvb." + new(140, URL_SAFE)
    yield "Doppler", "dp.pt." + new(43)
    yield "1Password", "ops_eyJ" + new(260)
    yield "age", "AGE-SECRET-KEY-1" + new(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")
    yield "Postman", "PMAK-" + new(24, HEX) + "-" + new(34, HEX)
    yield "Atlassian", "ATATT3" + new(186)
    yield "HubSpot", "pat-na1-" + new.uuid()
    yield "Airtable", "pat" + new(14) + "." + new(64, HEX)
    yield "Figma", "figd_" + new(40)
    yield "New Relic", "NRAK-" + new(27, UPPER)
    yield "Dynatrace", "dt0c01." + new(24, UPPER) + "." + new(64, UPPER)
    yield "Sentry", "sntryu_" + new(64, HEX)
    yield "Sourcegraph", "sgp_" + new(40, HEX)
    yield "Pulumi", "pul-" + new(40, HEX)
    yield "Terraform Cloud", new(14) + ".atlasv1." + new(67)
    yield "PlanetScale", "pscale_tkn_" + new(43)
    yield "Supabase", "sbp_" + new(40, HEX)
    yield "Fly.io", "fo1_" + new(43)
    yield "Tailscale", "tskey-auth-" + new(12) + "-" + new(32)
    yield "Typeform", "tfp_" + new(44) + "_" + new(14)
    yield "JSON Web Token", new.jwt()
    yield "RSA key", new.pem("RSA ")
    yield "OpenSSH key", new.pem("OPENSSH ")


def _named(new: _Maker) -> Iterator[tuple[str, str, str]]:
    """Keys of no form of their own, in the texts that say what they are."""
    for name, text, secret in (
        ("AWS secret", "AWS_SECRET_ACCESS_KEY={}", new(40)),
        ("Azure storage", "AccountName=a;AccountKey={};x=1", new(86) + "=="),
        ("Datadog", 'datadog_api_key: "{}"', new(40, HEX)),
        ("Cloudflare", "CLOUDFLARE_API_TOKEN={}", new(40)),
        ("Heroku", "HEROKU_API_KEY={}", new.uuid()),
        ("Mistral", "MISTRAL_API_KEY={}", new(32)),
        ("Twilio auth token", 'TWILIO_AUTH_TOKEN="{}"', new(32, HEX)),
        ("npmrc", "//registry.npmjs.org/:_authToken={}", new.uuid()),
        ("bearer header", "Authorization: Bearer {}", new(40)),
        ("basic header", "Authorization: Basic {}", new(32)),
        ("PostgreSQL", "postgresql://app:{}@db.example/app", new(12)),
        ("Redis", "redis://:{}@cache.example:6379/0", new(12)),
        ("MongoDB", "mongodb+srv://app:{}@cluster.example/app", new(12)),
        ("signed URL", "https://x.example/f?X-Amz-Signature={}", new(64, HEX)),
    ):
        yield name, text.format(secret), secret
