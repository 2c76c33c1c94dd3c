# Runs the training, and after it the job's last step: parameter servers never end by themselves.
#   last.sh COMMAND ...
"$@" &
child=$!
trap 'kill -s TERM "$child"' TERM INT
wait "$child"
code=$?
while kill -0 "$child" 2> /dev/null; do
  wait "$child"
  code=$?
done
if [ "$TASK_INDEX" = 0 ]; then
  "$(command -v python3 || command -v python)" /tfyard/end.py "$code"
fi
exit "$code"
