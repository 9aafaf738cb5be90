#!/bin/sh
# Run a command on the display that is there, or on a virtual one.
if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xvfb-run >/dev/null 2>&1; then
    exec xvfb-run -a -s "-screen 0 1920x1080x24" "$@"
fi
exec "$@"
