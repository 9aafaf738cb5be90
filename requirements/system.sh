#!/bin/sh
# Install the named Debian packages that are missing; elsewhere say what Qt needs and go on.
set -u
[ "$(uname)" = Linux ] || exit 0
if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "Not a Debian system: if Qt does not start, install what these packages are called here: $*" >&2
    exit 0
fi
missing=""
for package in "$@"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1; then as_root=sudo
    else echo "Please have these packages installed:$missing" >&2; exit 0; fi
fi
echo "Installing system libraries:$missing"
# Package lists may be absent or old on a fresh machine, so refresh them first.
$as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -qq -y $missing >/dev/null ||
    echo "Could not install$missing: Qt may not start until they are there." >&2
exit 0
