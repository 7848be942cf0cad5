"""`make vscode`: the extension of VS Code as `dist/vesper-VERSION.vsix`.

A `.vsix` is a zip of the extension with two files of metadata. Equal sources give equal bytes. npm installs the locked
packages into `.proofs/vscode`, and esbuild makes one file of the extension and the language client.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "dashboards" / "editors" / "vscode"
BUILD = ROOT / ".proofs" / "vscode" / "extension"
PACKED = ("README.md", "language-configuration.json", "syntaxes/vsp.tmLanguage.json", "dist/extension.js")
_ESBUILD = ("--bundle", "--minify", "--platform=node", "--target=node18", "--external:vscode", "--legal-comments=none")
_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\
<Default Extension=".json" ContentType="application/json"/>\
<Default Extension=".js" ContentType="application/javascript"/>\
<Default Extension=".md" ContentType="text/markdown"/>\
<Default Extension=".txt" ContentType="text/plain"/>\
<Default Extension=".vsixmanifest" ContentType="text/xml"/></Types>
"""
_MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
<DisplayName>{display}</DisplayName>
<Description xml:space="preserve">{description}</Description>
<Categories>{categories}</Categories>
<License>extension/LICENSE.txt</License>
<Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/></Properties>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
<Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
</Assets>
</PackageManifest>
"""


def pack() -> Path:
    """Bundle and pack the extension; return the path of the file."""
    for command in ("node", "npm"):
        if shutil.which(command) is None:
            raise SystemExit(f"error: {command} not found: install Node.js 18 or newer, with npm")
    shutil.copytree(SOURCE, BUILD, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    locked = BUILD / "package-lock.json"
    installed = BUILD / "node_modules" / ".installed"
    if not installed.exists() or installed.read_bytes() != locked.read_bytes():
        # esbuild's own install script only replaces a wrapper of its binary.
        command_line = ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command_line, cwd=BUILD, check=True)
        shutil.copy(locked, installed)
    bundle = ["node_modules/.bin/esbuild", "src/extension.js", "--outfile=dist/extension.js", "--log-level=warning"]
    subprocess.run([*bundle, *_ESBUILD], cwd=BUILD, check=True)
    package = json.loads((BUILD / "package.json").read_text(encoding="utf-8"))
    for key in ("devDependencies", "dependencies"):  # bundled
        package.pop(key)
    files = {f"extension/{name}": (BUILD / name).read_bytes() for name in PACKED}
    files["extension/package.json"] = json.dumps(package, indent=2).encode("utf-8")
    files["extension/LICENSE.txt"] = (ROOT / "LICENSE").read_bytes()
    target = ROOT / "dist" / f"{package['name']}-{package['version']}.vsix"
    target.parent.mkdir(exist_ok=True)
    write_archive(
        target, {"extension.vsixmanifest": manifest(package), "[Content_Types].xml": _TYPES.encode(), **files}
    )
    return target


def manifest(package: dict[str, object]) -> bytes:
    """Return the manifest of the archive."""
    engines, categories = package["engines"], package["categories"]
    assert isinstance(engines, dict)
    assert isinstance(categories, list)
    quoted = {key: quoteattr(str(package[key])) for key in ("name", "version", "publisher")}
    return _MANIFEST.format(
        **quoted,
        display=package["displayName"],
        description=package["description"],
        categories=",".join(categories),
        engine=quoteattr(engines["vscode"]),
    ).encode("utf-8")


def write_archive(target: Path, files: dict[str, bytes]) -> None:
    """Write a zip whose bytes depend on the files only."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)


if __name__ == "__main__":
    path = pack()
    print(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size // 1024} KiB: code --install-extension {path}")
    sys.exit(0)
