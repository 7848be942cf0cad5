#!/usr/bin/env bash
# Install the programs that the tests start and the build does not bring: PostgreSQL, Redis, locales, decimal cases;
# and those of other tests that arguments name, such as `chromium`.
# Runs apt-get as root, or through `sudo -n`. Where neither works, prints one line with the packages and exits with 1.
# Redis from PyPI is no substitute: its builds have no TLS, which tests use.
set -euo pipefail
PYTHON="${PYTHON:-python3}"

# The General Decimal Arithmetic cases come with CPython's own tests, or in a Debian package of them.
has_decimal_cases() {
    local stdlib
    stdlib="$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))' 2>/dev/null || true)"
    compgen -G "$stdlib/test/decimaltestdata/*.decTest" >/dev/null ||
        compgen -G "/usr/lib/python3*/test/decimaltestdata/*.decTest" >/dev/null
}

packages=()
command -v postgres >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || packages+=(postgresql)
command -v redis-server >/dev/null || packages+=(redis-server)
[[ -f /usr/share/i18n/locales/tr_TR ]] || packages+=(locales)
has_decimal_cases || packages+=(libpython3-testsuite)
for each in "$@"; do command -v "$each" >/dev/null || packages+=("$each"); done
((${#packages[@]})) || exit 0

run=()
[[ "$(id -u)" == 0 ]] || run=(sudo -n)
if ! command -v apt-get >/dev/null || { ((${#run[@]})) && ! sudo -n true 2>/dev/null; }; then
    echo "error: the tests need ${packages[*]}: install them (Debian, Ubuntu: sudo apt-get install ${packages[*]}), then run make test again" >&2
    exit 1
fi
echo "installing for the tests: ${packages[*]}"
"${run[@]}" apt-get update -qq
# Some releases have the decimal cases only in the package of their own Python version.
if [[ " ${packages[*]} " == *" libpython3-testsuite "* ]] && ! apt-cache show libpython3-testsuite >/dev/null 2>&1; then
    found="$(apt-cache pkgnames libpython3 | grep -E '^libpython3\.[0-9]+-testsuite$' | sort -V | tail -1)"
    packages=("${packages[@]/libpython3-testsuite/$found}")
fi
"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${packages[@]}" ca-certificates >/dev/null
