"""Images without a registry and without an engine: `buildah` in a chroot, archives in the cache.

Callers: `hack/images` and the commands that load images. The Dockerfiles are the same that Docker
builds; only their base differs. Layers are cached, so a change of code rebuilds what follows it.
"""

import hashlib
import json
import os
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from clusterlib import host
from clusterlib.binaries import say
from clusterlib.errors import ClusterError
from clusterlib.locks import exclusive
from clusterlib.paths import CHECKOUT, HACK, cache_home

SUITE = "bookworm"
NEWER_SUITE = "trixie"
"""Another Debian release, whose Python is 3.13: the runner image for projects that need it."""
REPOSITORY = "localhost/upgraderun"
PLAIN = ("ca-certificates", "python3", "python3-venv")
WITH_GIT = (*PLAIN, "git")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")
CERTIFICATES = Path("/etc/ssl/certs")
DOCKERFILES = HACK / "images.d"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one image is made. `suite` is the Debian release of its base."""

    name: str
    dockerfile: Path
    packages: tuple[str, ...]
    context: Path = CHECKOUT
    arguments: Mapping[str, str] = field(default_factory=dict)
    suite: str = SUITE


@dataclass(frozen=True, slots=True)
class Image:
    """A built image. `reference` is by digest and valid wherever the archive was loaded.

    `key` is the digest of all that it was made of.
    """

    name: str
    tag: str
    reference: str
    archive: str
    image_id: str
    key: str = ""


def recipes(*, extra: str | None, fixtures: Path) -> dict[str, Recipe]:
    """All images, by name. With `extra`, a folder below the checkout, there are test variants."""
    operator = Recipe("operator", CHECKOUT / "operator" / "Dockerfile", PLAIN)
    runner = Recipe("runner", CHECKOUT / "runner-image" / "Dockerfile", WITH_GIT)
    package = {"PACKAGE": fixtures.resolve().name}
    servers = Recipe(
        "fixtures", DOCKERFILES / "fixtures.Dockerfile", WITH_GIT, fixtures.resolve(), package
    )
    newer = replace(runner, name=f"runner-{NEWER_SUITE}", suite=NEWER_SUITE)
    made = [operator, runner, newer, servers]
    if extra:
        made += [
            Recipe(f"{each.name}-test", each.dockerfile, each.packages, arguments={"EXTRA": extra})
            for each in (operator, runner)
        ]
    return {recipe.name: recipe for recipe in made}


def build(wanted: Iterable[Recipe]) -> list[Image]:
    """Build images and write their archives; note them in `images.json` for tests and `load`."""
    host.require_root()
    host.ensure_packages(host.IMAGE_PACKAGES)
    with exclusive(_folder() / "lock", "builds images"):
        built = []
        for recipe in wanted:
            began = time.monotonic()
            image = _build(recipe)
            say(f"image {recipe.name}: {time.monotonic() - began:.0f} s, {image.reference}")
            built.append(image)
        known = {image.name: image for image in (*known_images(), *built)}
        content = json.dumps([asdict(image) for image in known.values()], indent=2)
        catalogue().write_text(content + "\n")
    return built


def known_images() -> list[Image]:
    """Images that were built before."""
    if not catalogue().exists():
        return []
    names = {known.name for known in fields(Image)}
    # Checkouts of several ages share the file.
    return [
        Image(**{name: value for name, value in facts.items() if name in names})
        for facts in json.loads(catalogue().read_text())
    ]


def catalogue() -> Path:
    """File that lists the built images: name, tag, reference by digest, archive."""
    return _folder() / "images.json"


def archive_of(name_or_path: str) -> Path:
    """The archive of a built image, or an archive given by its path."""
    known = {image.name: Path(image.archive) for image in known_images()}
    archive = known.get(name_or_path, Path(name_or_path))
    if not archive.is_file():
        raise ClusterError(
            f"no image and no archive {name_or_path} (built: {sorted(known) or 'none'}); "
            "`hack/images build` makes them"
        )
    return archive


def identity(archive: Path) -> tuple[str, str]:
    """Name with tag, and digest of the manifest, of the only image in an OCI archive."""
    with tarfile.open(archive) as content:
        index = content.extractfile("index.json")
        if index is None:
            raise ClusterError(f"{archive} is no OCI archive")
        entry = json.load(index)["manifests"][0]
    return entry["annotations"]["org.opencontainers.image.ref.name"], entry["digest"]


def _build(recipe: Recipe) -> Image:
    base = _ensure_base(recipe.suite, recipe.packages)
    tag = f"{REPOSITORY}/{recipe.name}:dev"
    arguments = {"BASE": base, **_certificate_arguments(), **recipe.arguments}
    key = _key(recipe, arguments)
    for image in known_images():
        if image.tag == tag and image.key == key and Path(image.archive).exists():
            return image
    ignore = ["--ignorefile", str(_ignore_file(recipe))]
    _buildah(
        "bud",
        *("--isolation", "chroot", "--layers", "--pull-never", "--tag", tag),
        *("--timestamp", "0", "--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"),
        *[part for pair in arguments.items() for part in ("--build-arg", "=".join(pair))],
        *(ignore if recipe.context == CHECKOUT else []),
        *("--file", str(recipe.dockerfile), str(recipe.context)),
    )
    image_id = _buildah("images", "--no-trunc", "--quiet", tag).strip()
    for image in known_images():
        if image.tag == tag and image.image_id == image_id and Path(image.archive).exists():
            return replace(image, key=key)
    archive = _folder() / f"{recipe.name}.tar"
    archive.unlink(missing_ok=True)
    _buildah("push", "--compression-format", "zstd", tag, f"oci-archive:{archive}:{tag}")
    _, digest = identity(archive)
    reference = f"{tag.rpartition(':')[0]}@{digest}"
    return Image(recipe.name, tag, reference, str(archive), image_id, key)


def _key(recipe: Recipe, arguments: Mapping[str, str]) -> str:
    """Digest of everything that decides what comes out: arguments, Dockerfile, context."""
    digest = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode())
    for path in sorted({recipe.dockerfile, *_context(recipe)}):
        digest.update(f"\0{os.path.relpath(path, CHECKOUT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _context(recipe: Recipe) -> Iterator[Path]:
    """Files that a build may see; a compiled one follows from its source."""
    roots = [recipe.context]
    if recipe.context == CHECKOUT:
        lines = _ignore_file(recipe).read_text().splitlines()
        roots = [CHECKOUT / line[1:] for line in lines if line.startswith("!")]
    for root in roots:
        found = root.rglob("*") if root.is_dir() else [root]
        yield from (path for path in found if path.is_file() and path.suffix != ".pyc")


def _ignore_file(recipe: Recipe) -> Path:
    """The checkout's own, which leaves out whatever an image isn't made of, plus the extra."""
    kept = f"!{recipe.arguments['EXTRA']}\n" if "EXTRA" in recipe.arguments else ""
    path = _folder() / "dockerignore"
    path.write_text((CHECKOUT / ".dockerignore").read_text() + kept)
    return path


def _ensure_base(suite: str, packages: tuple[str, ...]) -> str:
    """The local base of a Debian release with these packages; made once."""
    dockerfile = DOCKERFILES / "base.Dockerfile"
    recipe = json.dumps([suite, packages, LEFT_OUT, dockerfile.read_text()])
    tag = f"localhost/upgraderun-base:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if tag in _buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        return tag
    say(f"base image of {suite} with {', '.join(packages)}: about a minute")
    context = _folder() / "base"
    context.mkdir(parents=True, exist_ok=True)
    rootfs = context / "rootfs.tar"
    left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    include = f"--include={','.join(packages)}"
    host.run(["mmdebstrap", "--variant=minbase", include, *left_out, suite, str(rootfs)])
    _buildah("bud", "--isolation", "chroot", "--tag", tag, "--file", str(dockerfile), str(context))
    rootfs.unlink()
    return tag


def _certificate_arguments() -> dict[str, str]:
    """The host's bundle is mounted into the build; tools must also be told to use it."""
    bundle = CERTIFICATES / "ca-certificates.crt"
    return {"SSL_CERT_FILE": str(bundle), "PIP_CERT": str(bundle)} if bundle.exists() else {}


def _buildah(command: str, *arguments: str) -> str:
    storage = _folder() / "storage"
    run_root = _folder() / "run"
    for folder in (storage, run_root):
        folder.mkdir(parents=True, exist_ok=True)
    place = ["--root", str(storage), "--runroot", str(run_root), "--storage-driver", "overlay"]
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    # In a mount namespace of its own: buildah leaves mounts behind otherwise.
    alone = ["unshare", "--mount", "--", "nice", "buildah", *place]
    return host.run([*alone, command, *arguments], env=environment)


def _folder() -> Path:
    return cache_home() / "images"
