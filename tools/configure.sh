#!/usr/bin/env bash
# Configures a build folder against Debian's libtorch, or against the wheel of the version given.
#   tools/configure.sh BUILD [debian|VERSION]
set -euo pipefail

build=$1
torch=${2:-debian}
options=(-S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release)

if [ "$torch" != debian ]; then
  venv=.venv-torch-$torch
  if [ ! -x "$venv/bin/python" ]; then /usr/bin/python3 -m venv "$venv"; fi
  "$venv/bin/python" -c "import torch; assert torch.__version__.split('+')[0] == '$torch'" 2>/dev/null ||
    "$venv/bin/python" -m pip install --quiet "torch==$torch" numpy
  options+=("-DCMAKE_PREFIX_PATH=$("$venv/bin/python" -c 'import torch; print(torch.utils.cmake_prefix_path)')"
            "-DSYNCOPATE_TORCHRUN=$PWD/$venv/bin/torchrun")
fi
cmake "${options[@]}"
