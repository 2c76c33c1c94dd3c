# Runs the training, and then end.py, because parameter servers never end by themselves.
#   last.sh COMMAND ...
child= stopped=
trap 'stopped=yes; [ -z "$child" ] || kill -s TERM "$child"' TERM INT
"$@" &
child=$!
[ -z "$stopped" ] || kill -s TERM "$child"
wait "$child"
code=$?
while kill -0 "$child" 2> /dev/null; do
  wait "$child"
  code=$?
done
# A task that was stopped, by a drain for example, has not ended: its pod is replaced.
if [ -z "$stopped" ] || [ "$code" = 0 ]; then
  "$(command -v python3 || command -v python)" /tfyard/end.py "$code"
fi
exit "$code"
