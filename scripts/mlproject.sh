#!/bin/sh
# What `mlflow run` calls: `evaltrack run`, by a Python that has what evaltrack needs.
#
# That is the active one; or that of mlflow, where it was called by its path; or the one of an environment that MLflow
# made (--env-manager uv, virtualenv or conda), into which the project's requirements are installed first.
set -eu

complete() { # whether a Python has the packages that evaltrack needs
    "$1" -c 'import importlib.util as u, sys; sys.exit(any(map(lambda n: u.find_spec(n) is None, sys.argv[1:])))' \
        mlflow openai tiktoken pandas click pydantic bm25s jmespath httpx2 2>/dev/null
}

mlflow=$PPID # the first parent that is no shell
while case $(ps -o comm= -p "$mlflow") in sh | bash | dash | zsh | ksh | */sh | */bash | */zsh) true ;; *) false ;; esac; do
    mlflow=$(ps -o ppid= -p "$mlflow" | tr -d ' ')
done

# Files that are not in the project are looked for where mlflow was called.
EVALTRACK_CALLER_FOLDER=$(readlink "/proc/$mlflow/cwd" 2>/dev/null || lsof -a -p "$mlflow" -d cwd -Fn 2>/dev/null | sed -n 's/^n//p')
export EVALTRACK_CALLER_FOLDER

interpreter=$(ps -o args= -p "$mlflow" | cut -d ' ' -f 1)

install() { # the project's requirements, by pip or, where MLflow's uv left it out, by uv
    if python -m pip --version >/dev/null 2>&1; then
        python -m pip install -q -c scripts/constraints.txt .
    else
        uv=$(command -v uv || echo "$(dirname -- "$interpreter")/uv")
        "$uv" pip install -q --python "$environment" -c scripts/constraints.txt .
    fi
}

environment=${VIRTUAL_ENV:-${CONDA_PREFIX:-}}
if basename -- "$environment" | grep -Eqx 'mlflow-[0-9a-f]{40}'; then
    python=python
    requirements=$(cksum <pyproject.toml)
    if [ "$(cat "$environment/evaltrack" 2>/dev/null)" != "$requirements" ]; then
        echo "installing evaltrack into MLflow's environment, once" >&2
        install >&2
        echo "$requirements" >"$environment/evaltrack"
    fi
elif complete python; then
    python=python
else
    python=$interpreter
    if ! complete "$python"; then
        echo "Error: evaltrack is not installed for \`python\`, nor for mlflow's own Python." >&2
        echo "Activate the environment it is installed in, or call: mlflow run --env-manager uv" >&2
        exit 2
    fi
fi
exec "$python" -m evaltrack run "$@"
