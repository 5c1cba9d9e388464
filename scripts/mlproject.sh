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

if [ -r /proc/self/status ]; then # Linux, where a small image may lack ps
    name_of() { cat "/proc/$1/comm"; }
    parent_of() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status"; }
    program_of() { tr '\0' '\n' <"/proc/$1/cmdline" | head -n 1; }
    folder_of() { readlink "/proc/$1/cwd"; }
else
    name_of() { basename -- "$(ps -o comm= -p "$1")"; }
    parent_of() { ps -o ppid= -p "$1" | tr -d ' '; }
    program_of() { ps -o args= -p "$1" | cut -d ' ' -f 1; }
    folder_of() { lsof -a -p "$1" -d cwd -Fn 2>/dev/null | sed -n 's/^n//p'; }
fi

mlflow=$PPID # the first parent that is no shell
while case $(name_of "$mlflow") in sh | bash | dash | zsh | ksh) true ;; *) false ;; esac; do
    mlflow=$(parent_of "$mlflow")
done
interpreter=$(program_of "$mlflow")

# Files that are not in the project are looked for where mlflow was called.
EVALTRACK_CALLER_FOLDER=$(folder_of "$mlflow" || true)
export EVALTRACK_CALLER_FOLDER

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

# Each `--NAME VALUE` is a setting, but for the options that are none.
left=$#
while [ "$left" -gt 0 ]; do
    case $1 in
    --output | --resume | --min[-_]coverage | -k) set -- "$@" "$1" "$2" ;;
    *) set -- "$@" --set "${1#--}=$2" ;;
    esac
    shift 2
    left=$((left - 2))
done
exec "$python" -m evaltrack run "$@"
