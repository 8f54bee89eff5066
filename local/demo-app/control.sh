#!/bin/sh
# Controls the demo app of the README: a background process with a pid file. `control.sh start|stop|restart|status`
set -eu

folder="/tmp/countersign-demo-app-$(id -u)"
pid_file="$folder/pid"
mkdir -p "$folder"

is_running() {
  [ -f "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null
}

stop() {
  if is_running; then
    echo "stopping the demo app (process $(cat "$pid_file"))"
    kill "$(cat "$pid_file")"
    sleep 1
  else
    echo 'the demo app does not run'
  fi
  rm -f "$pid_file"
}

start() {
  echo 'starting the demo app'
  nohup sh -c 'echo $$ > "$1"; while :; do date; sleep 5; done' demo-app "$pid_file" > "$folder/log" 2>&1 < /dev/null &
  sleep 1
  is_running || { echo 'the demo app did not start; see its log' >&2; exit 1; }
  echo "the demo app runs (process $(cat "$pid_file"))"
}

case "${1:-}" in
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
  status) if is_running; then echo "runs (process $(cat "$pid_file"))"; else echo 'does not run'; exit 1; fi ;;
  *) echo 'usage: control.sh start|stop|restart|status' >&2; exit 2 ;;
esac
