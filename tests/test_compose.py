"""The nodes of `docker-compose.yml` are secured, and its script makes valid certificates.

The tests do not run Docker. They read the file, and run the script of the certificate step with the tool of a real
distribution.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from tests.conftest import no_server
from tests.profile import FULL
from tests.server import distribution
from tests.server.distribution import Distribution, ServerUnavailable

ROOT = Path(__file__).parents[1]
NODES = ("es01", "es02", "es03")
REQUIRED = "${ELASTIC_PASSWORD:?copy .env.example to .env and set a password}"
CONFIG = "/usr/share/elasticsearch/config"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return read


@pytest.fixture(params=["elasticsearch", *NODES, "certificates"])
def service(request: pytest.FixtureRequest, compose: dict[str, Any]) -> dict[str, Any]:
    return dict(compose["services"][request.param])


@pytest.fixture(params=["elasticsearch", *NODES])
def node(request: pytest.FixtureRequest, compose: dict[str, Any]) -> dict[str, Any]:
    return dict(compose["services"][request.param])


def mounted(service: Mapping[str, Any]) -> set[str]:
    """Return the names of a service's volumes."""
    return {volume.partition(":")[0] for volume in service["volumes"]}


def test_the_profile_three_has_three_nodes_and_a_step_that_makes_certificates(
    compose: dict[str, Any],
) -> None:
    assert {name: service.get("profiles") for name, service in compose["services"].items()} == {
        "elasticsearch": None,
        **{name: ["three"] for name in (*NODES, "certificates")},
    }


def test_a_service_has_minimal_privileges_and_the_tested_version(service: dict[str, Any]) -> None:
    assert service["image"] == f"elasticsearch:{distribution.VERSION}"
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service and "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True and service["mem_limit"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_a_service_mounts_only_volumes_of_the_file(compose: dict[str, Any], service: dict[str, Any]) -> None:
    assert mounted(service) <= compose["volumes"].keys()


def test_all_volumes_are_used(compose: dict[str, Any]) -> None:
    assert set().union(*map(mounted, compose["services"].values())) == compose["volumes"].keys()


def test_a_node_requires_a_password_and_has_a_health_check(node: dict[str, Any]) -> None:
    settings = node["environment"]
    assert settings["ELASTIC_PASSWORD"] == REQUIRED
    assert settings["xpack.security.enabled"] == "true"
    assert settings["bootstrap.memory_lock"] == "true"
    assert node["ulimits"]["memlock"] == {"soft": -1, "hard": -1}
    kind, check = node["healthcheck"]["test"]
    assert kind == "CMD-SHELL" and "$$ELASTIC_PASSWORD" in check and "_cluster/health" in check
    assert subprocess.run(["sh", "-n", "-c", check], check=False).returncode == 0
    assert "--insecure" not in check and " -k " not in check


def test_the_file_contains_no_secret(compose: dict[str, Any]) -> None:
    """Secrets are variables without default, and keys of certificates are generated files."""
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if "password" in name.lower() or "secret" in name.lower():
                assert value == REQUIRED
            if name.endswith(".key"):
                assert value == "certificates/node.key"


def test_config_folders_have_the_version_of_the_image_in_their_name(node: dict[str, Any]) -> None:
    """Docker fills a volume from the image only when it creates the volume."""
    (config,) = [volume for volume in node["volumes"] if volume.endswith(f":{CONFIG}")]
    assert config.partition(":")[0].endswith(f"-config-{distribution.VERSION}")


@pytest.mark.parametrize("name", NODES)
def test_each_of_three_nodes_uses_tls_and_its_own_certificate(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    settings = service["environment"]
    for layer in ("http", "transport"):
        assert settings[f"xpack.security.{layer}.ssl.enabled"] == "true"
        for setting, file in (("key", "node.key"), ("certificate", "node.crt")):
            assert settings[f"xpack.security.{layer}.ssl.{setting}"] == f"certificates/{file}"
        assert settings[f"xpack.security.{layer}.ssl.certificate_authorities"] == "certificates/ca.crt"
    assert settings["node.name"] == name
    assert settings["discovery.seed_hosts"] == settings["cluster.initial_master_nodes"] == ",".join(NODES)
    assert f"{name}-certificates:{CONFIG}/certificates:ro" in service["volumes"]
    assert not any(volume.startswith("authority:") for volume in service["volumes"])
    assert service["depends_on"] == {"certificates": {"condition": "service_completed_successfully"}}
    ports = [other["ports"] for other in compose["services"].values() if "ports" in other]
    assert ports.count(service["ports"]) == 1


def test_the_example_lists_the_variables() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    names = {line.partition("=")[0].removeprefix("# ") for line in example}
    assert names >= {"ELASTIC_PASSWORD", "SEARCHAPP_URL", "SEARCHAPP_USERNAME", "SEARCHAPP_PASSWORD"}
    assert names >= {"SEARCHAPP_CA_CERTS", "ELASTIC_HEAP", "ELASTIC_MEMORY"}


# The step that makes certificates


class CertificateStep:
    """The certificate step in folders of a test.

    The distribution has no script `elasticsearch-certutil`, so that a shim starts the tool.
    """

    def __init__(self, service: Mapping[str, Any], folder: Path, host: Distribution) -> None:
        self.authority, self.certificates = folder / "authority", folder / "certificates"
        for path in (self.authority, *(self.certificates / name for name in NODES), folder / "bin"):
            path.mkdir(parents=True)
        assert [volume.partition(":")[2] for volume in service["volumes"]] == [
            "/authority",
            *(f"/certificates/{name}" for name in NODES),
        ]
        (script,) = service["command"]
        assert service["entrypoint"] == ["/bin/bash", "-c"]
        for inside, outside in (("/authority", self.authority), ("/certificates", self.certificates)):
            script = script.replace(f" {inside}", f" {outside}").replace(f'"{inside}', f'"{outside}')
        self._script = script.replace("$$", "$")
        libraries = "modules/x-pack-core,modules/x-pack-security,lib/tools/security-cli"
        command = shlex.join(host.tool("certutil", host.home / "config", libraries, "docker"))
        shim = folder / "bin" / "elasticsearch-certutil"
        shim.write_text(f'#!/bin/sh\necho "$1" >> {folder}/calls\ncd {host.home} && exec {command} "$@"\n')
        shim.chmod(0o755)
        self._folder = folder

    def run(self) -> list[str]:
        """Run the step; return the modes in which it called the tool."""
        calls = self._folder / "calls"
        calls.write_text("")
        environment = {**os.environ, "PATH": f"{self._folder}/bin:{os.environ['PATH']}"}
        environment["TMPDIR"] = str(self._folder)
        before = set(self._folder.iterdir())
        subprocess.run(["/bin/bash", "-c", self._script], env=environment, check=True, timeout=120)
        assert set(self._folder.iterdir()) == before, "temporary files are left"
        return calls.read_text().split()

    def files(self) -> dict[str, bytes]:
        folders = (self.authority, self.certificates)
        paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self._folder)): path.read_bytes() for path in paths}


@pytest.fixture
def step(compose: dict[str, Any], tmp_path: Path) -> Iterator[CertificateStep]:
    try:
        host = Distribution.find(distribution.VERSION)
    except ServerUnavailable as error:
        no_server(error)
    yield CertificateStep(compose["services"]["certificates"], tmp_path, host)


@pytest.mark.elasticsearch
def test_the_step_makes_only_missing_files(step: CertificateStep) -> None:
    # The state after an interruption between unpacking and moving the authority.
    (step.authority / "new" / "ca").mkdir(parents=True)
    assert step.run() == ["ca", "cert"]
    files = step.files()
    own = {f"certificates/{name}/{file}" for name in NODES for file in ("ca.crt", "node.crt", "node.key")}
    assert set(files) == own | {"authority/ca/ca.crt", "authority/ca/ca.key"}
    authority = x509.load_pem_x509_certificate(files["authority/ca/ca.crt"])
    for name in NODES:
        assert files[f"certificates/{name}/ca.crt"] == files["authority/ca/ca.crt"]
        certificate = x509.load_pem_x509_certificate(files[f"certificates/{name}/node.crt"])
        certificate.verify_directly_issued_by(authority)
        assert certificate.not_valid_after_utc < authority.not_valid_after_utc
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert set(names.get_values_for_type(x509.DNSName)) == {name, "localhost"}
        assert names.get_values_for_type(x509.IPAddress) == [ip_address("127.0.0.1")]
        key = load_pem_private_key(files[f"certificates/{name}/node.key"], None)
        expected, public = (
            owner.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            for owner in (key, certificate)
        )
        assert expected == public
    # Only the group of the nodes can read them.
    for path in (*step.authority.rglob("*"), *step.certificates.glob("*/*")):
        assert path.stat().st_mode & 0o077 == (0o050 if path.is_dir() else 0o040), path

    assert step.run() == []
    assert step.files() == files
    if not FULL:  # the tool starts in two seconds
        return
    # The next start after a node has lost its certificate.
    (step.certificates / "es02" / "node.crt").unlink()
    assert step.run() == ["cert"]
    again = step.files()
    assert {name for name in files if again[name] != files[name]} == {
        "certificates/es02/node.crt",
        "certificates/es02/node.key",
    }
    x509.load_pem_x509_certificate(again["certificates/es02/node.crt"]).verify_directly_issued_by(authority)
