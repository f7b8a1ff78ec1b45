#!/usr/bin/env bash
# Install the wheel together with NumPy < 2.3, pandas, PyTerrier and ranx, rank with it, and compare fusions with those of
# ranx: `make test-beside`.
#
# scripts/test_beside.sh UV FOLDER, where UV is the program uv and FOLDER the new environment.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$PWD/$1 folder=$PWD/$2

"$uv" venv --quiet --clear --seed --python 3.11 "$folder"
install() { "$uv" pip install --quiet --python "$folder" "$@"; }
freeze() { "$uv" pip freeze --quiet --python "$folder" | LC_ALL=C sort; }

install 'numpy<2.3' pandas pyterrier ranx
freeze > "$folder/before.txt"
"$uv" build --quiet --wheel --out-dir "$folder/dist" .
install "$folder"/dist/*.whl
freeze > "$folder/after.txt"
if changed=$(LC_ALL=C comm -23 "$folder/before.txt" "$folder/after.txt" | grep .); then
  printf 'Installing searchapp changed these packages:\n%s\n' "$changed" >&2
  exit 1
fi
"$folder/bin/python" -m pip check

# Run outside the checkout, so that only the wheel can be imported.
mkdir "$folder/tested"
cp -r pyproject.toml tests "$folder/tested"
cd "$folder/tested"
NO_COLOR=1 "$folder/bin/searchapp" --home home demo > demo.txt
diff <(sed 's/on the engine [^ ]* [^ ]*/on the engine ENGINE/' demo.txt) tests/fixtures/golden/demo.txt
install pytest pytest-timeout pytest-xdist hypothesis
# Importing ranx warns of an escape sequence.
SEARCHAPP_TEST_PROFILE=short PYTHONDONTWRITEBYTECODE= "$folder/bin/python" -m pytest -n 2 --dist loadfile -m 'not elasticsearch' \
  -o pythonpath= tests/engines/embedded/test_recorded.py tests/api/test_pyterrier.py tests/ranking/test_fusion.py \
  -W 'ignore:invalid escape'
for package in numpy pandas pyterrier ranx searchapp; do
  "$folder/bin/python" -c "import sys, importlib.metadata as m; print(*sys.argv[1:], m.version(sys.argv[1]))" $package
done
