#!/usr/bin/env bash
# Installs what is missing of the packages that the build and the tests need (Debian 12), with sudo only if not root.
#   tools/install_packages.sh [debian|VERSION] [tests]
# VERSION: a libtorch from PyPI instead of Debian's. tests: also the browser that they open the page in.
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config libgloo-dev libopenblas0-pthread libcli11-dev nlohmann-json3-dev
          libtomlplusplus-dev libfmt-dev libutf8proc-dev zlib1g-dev libssl-dev libcpp-httplib-dev libxlsxwriter-dev
          libgtest-dev wordnet-base dataset-fashion-mnist
          openmpi-bin libopenmpi-dev iproute2 procps python3 python3-torch)
if [ "${1:-debian}" = debian ]; then packages+=(libtorch-dev); else packages+=(python3-venv); fi
if [ "${2:-}" = tests ]; then packages+=(chromium chromium-driver); fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "These packages are missing and apt-get is not here to install them: ${missing[*]}" >&2
  exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
