# One pod template serves all roles: finds the role and the index in it from the index of this pod.
#   task.sh ROLE:COUNT ... -- COMMAND ...
number=$TASK_INDEX
JOB_NAME=
while [ "$1" != "--" ]; do
  role=${1%:*}
  count=${1#*:}
  shift
  if [ -z "$JOB_NAME" ] && [ "$number" -lt "$count" ]; then
    JOB_NAME=$role
    TASK_INDEX=$number
  fi
  number=$((number - count))
done
shift
cluster=$TFYARD_CLUSTER
if [ "$JOB_NAME" = evaluator ] && [ -n "$TFYARD_EVALUATOR" ]; then
  cluster=$TFYARD_EVALUATOR
fi
export JOB_NAME TASK_INDEX
export TF_CONFIG="@TF_CONFIG@"
exec "$@"
