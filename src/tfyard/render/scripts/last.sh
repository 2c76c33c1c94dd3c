# Runs the training, and after it the job's last step: parameter servers never end by themselves.
#   last.sh COMMAND ...
"$@" &
child=$!
told=
trap 'told=yes; kill -s TERM "$child"' TERM INT
wait "$child"
code=$?
while kill -0 "$child" 2> /dev/null; do
  wait "$child"
  code=$?
done
# Told to stop, as on a node that is drained, it has not ended: its pod is replaced.
if [ -z "$told" ] || [ "$code" = 0 ]; then
  "$(command -v python3 || command -v python)" /tfyard/end.py "$code"
fi
exit "$code"
