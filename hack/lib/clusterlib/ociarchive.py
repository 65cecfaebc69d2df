"""Images of one static program, made without any tool: an OCI archive is a tar of small JSON files.

Callers: `local`, for the pause container and the cluster's DNS.
"""

import hashlib
import io
import json
import tarfile
from pathlib import Path

PAUSE_IMAGE = "localhost/upgraderun-cluster/pause:1"
DNS_IMAGE = "localhost/upgraderun-cluster/coredns:1"
OCI = "application/vnd.oci.image"


def write(archive: Path, name: str, program: Path) -> None:
    """Write an image whose only file and entry point is the program."""
    layer = _tar({program.name: (program.read_bytes(), 0o755)})
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"], "User": "65532"},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    blobs = {"layer": layer, "config": json.dumps(config).encode()}
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": _descriptor(f"{OCI}.config.v1+json", blobs["config"]),
        "layers": [_descriptor(f"{OCI}.layer.v1.tar", layer)],
    }
    blobs["manifest"] = json.dumps(manifest).encode()
    entry = _descriptor(f"{OCI}.manifest.v1+json", blobs["manifest"])
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    index = {"schemaVersion": 2, "manifests": [{**entry, "annotations": names}]}
    files = {
        "oci-layout": (b'{"imageLayoutVersion": "1.0.0"}', 0o644),
        "index.json": (json.dumps(index).encode(), 0o644),
    }
    for blob in blobs.values():
        files[f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}"] = (blob, 0o644)
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(_tar(files))


def _descriptor(media_type: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
