"""The SBOM: SPDX 2.3 in JSON, of the program, of what is in the image or in the program, and of what built it.

Source: SPDX specification 2.3, clauses 6 to 11; purl of Debian packages: package-url's type "deb".
"""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import urllib.parse

NAME = "device-health-controller"
# Headers that become a part of the program.
COMPILED_IN = ("libboost1.74-dev", "libcli11-dev", "nlohmann-json3-dev", "libspdlog-dev", "libfmt-dev", "libsimdjson-dev", "libprotozero-dev", "libstdc++-12-dev")
TOOLS = ("g++-12", "binutils", "cmake", "ninja-build", "libc6-dev")


def fields(package: str) -> dict[str, str]:
    form = "${binary:Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Maintainer}\t${Homepage}"
    text = subprocess.run(("dpkg-query", "--show", f"--showformat={form}", package), check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(zip(("name", "version", "architecture", "source", "source_version", "maintainer", "homepage"), text.split("\t")))


def spdx_id(name: str) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def debian(package: str) -> dict:
    about = fields(package)
    name = about["name"].split(":")[0]
    version = urllib.parse.quote(about["version"], safe="")
    return {
        "SPDXID": spdx_id(name),
        "name": name,
        "versionInfo": about["version"],
        "supplier": f"Person: {about['maintainer'].replace('<', '(').replace('>', ')')}",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "homepage": about["homepage"] or "NOASSERTION",
        "sourceInfo": f"Debian source package {about['source']} {about['source_version']}",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{urllib.parse.quote(name, safe='')}@{version}?arch={about['architecture']}&distro=debian-12"}],
    }


def own(binary: pathlib.Path) -> dict:
    """Our own program; its version is the project's, in CMakeLists.txt."""
    version = re.search(r"project\(\S+ VERSION (\S+)", pathlib.Path("CMakeLists.txt").read_text()).group(1)
    return {
        "SPDXID": spdx_id(NAME),
        "name": NAME,
        "versionInfo": version,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(binary.read_bytes()).hexdigest()}],
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    }


def document(binary: pathlib.Path, shipped: set[str], seconds: int) -> str:
    """The whole SBOM of a program and the packages whose files stand beside it. The same inputs give the same bytes."""
    program = own(binary)
    related = [("DYNAMIC_LINK", program["SPDXID"], sorted(shipped)), ("CONTAINS", program["SPDXID"], COMPILED_IN)]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": program["SPDXID"]}]
    for kind, subject, packages in related:
        relations += [{"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": spdx_id(package)} for package in packages]
    relations += [{"spdxElementId": spdx_id(tool), "relationshipType": "BUILD_TOOL_OF", "relatedSpdxElement": program["SPDXID"]} for tool in TOOLS]
    packages = [debian(package) for package in sorted({*shipped, *COMPILED_IN, *TOOLS})]
    created = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    contents = hashlib.sha256(json.dumps([program, packages], sort_keys=True).encode()).hexdigest()
    return json.dumps({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{NAME}-{program['versionInfo']}",
        "documentNamespace": f"https://device-health.io/spdx/{NAME}-{program['versionInfo']}-{contents}",
        "creationInfo": {"created": created, "creators": ["Tool: image/sbom.py"]},
        "packages": [program, *packages],
        "relationships": relations,
    }, indent=2) + "\n"
