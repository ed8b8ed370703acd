#!/bin/bash
# tools/lab makes hosts that share only a wire, runs ranks on them, and leaves nothing behind.
#   lab_test.sh LAB ALL_REDUCE_PERF
# Exit status 77: this machine does not let us make network namespaces.
set -euo pipefail
lab=$1 program=$2
export LAB_NAME=tern-test  # a lab that somebody uses is left alone

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
work=$(mktemp -d)
trap '"$lab" down; rm -rf "$work"' EXIT
[ "$(id -u)" = 0 ] && command -v ip >/dev/null && unshare --net --uts true 2>/dev/null || {
  trap - EXIT
  echo "skipped: network namespaces need root"
  exit 77
}

refuses() {  # refuses TEXT ARGUMENT...: status 2, and the text on stderr
  local text=$1 status=0
  shift
  "$lab" "$@" 2>"$work/err" || status=$?
  [ "$status" = 2 ] || fail "lab $* ended with $status, not 2"
  grep -qF -- "$text" "$work/err" || fail "lab $* said: $(cat "$work/err")"
}
refuses 'up needs a number of hosts, 1 to 64, not "many"' up many
refuses 'unknown argument "--speed"' up 2 --speed 1gbit
refuses '"fast" is not a rate' up 2 --rate fast
[ -z "$(ip netns list | grep tern-test || true)" ] || fail "a failed up left namespaces"
echo "5 1gbit" >"$work/rates"
refuses 'with a host from 1 to 3' up 3 --rates "$work/rates"
refuses 'there are no hosts' run -n 1 -- true

echo "2 500mbit" >"$work/rates"
"$lab" up 3 --rate 1gbit --rates "$work/rates"
for host in 1:1Gbit 2:500Mbit 3:1Gbit; do
  for device in tern-test${host%:*} eth0; do
    in=() && [ "$device" = eth0 ] && in=(-n "tern-test-${host%:*}")
    tc "${in[@]}" qdisc show dev "$device" | grep -q "rate ${host#*:}" || fail "$device of $host: its rate"
  done
done

# Ranks are dealt to the hosts in turns; what they exchange crosses the wire.
dealt=$("$lab" run -n 4 -- sh -c 'echo $TERN_HOST_ID $(hostname)' | sort | uniq -c | tr -s ' ' | tr '\n' ';')
[ "$dealt" = " 2 tern-test-1 tern-test-1; 1 tern-test-2 tern-test-2; 1 tern-test-3 tern-test-3;" ] ||
  fail "ranks were dealt to $dealt"
sent() { cat /sys/class/net/tern-test2/statistics/rx_bytes; }
before=$(sent)
"$lab" run -n 3 -- "$program" -b 1M -e 1M -n 2 -w 0 >"$work/out" || fail "$(cat "$work/out")"
grep -q 'Out of bounds values : 0 OK' "$work/out" || fail "$(cat "$work/out")"
[ $(($(sent) - before)) -gt 2000000 ] || fail "host 2 sent only $(($(sent) - before)) bytes"

# On such a wire codecs pay, as ranks find out by themselves; on a small vector they never do.
"$lab" run -n 3 -- "$program" -b 16K -e 1M -f 64 -n 2 -w 1 --codec auto --json "$work/auto.json" \
  >"$work/out" || fail "$(cat "$work/out")"
chosen=$(jq -r '[.results[].codec] | join(" ")' "$work/auto.json")
[ "$chosen" = "none q8" ] || fail "codec auto chose $chosen"
jq -e '.out_of_bounds.count == 0' "$work/auto.json" >/dev/null || fail "$(cat "$work/auto.json")"

status=0
"$lab" run -n 2 -- sh -c 'exit 7' 2>"$work/err" || status=$?
[ "$status" = 7 ] || fail "the status of the ranks came out as $status"

# A run that is killed leaves its ranks to `down`.
mkfifo "$work/started"
"$lab" run -n 3 -- sh -c "echo \$\$ >'$work/started'; exec tail -f /dev/null" 2>/dev/null &
killed=$!
read -r rank <"$work/started"
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
[ -d "/proc/$rank" ] || fail "rank $rank ended with the run: nothing is left to test"
"$lab" down
runs() { grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }  # not only waits for its parent to ask
# A killed process is still seen for a moment; one that was not, until the test times out.
while runs "$rank"; do :; done
[ -z "$(ip netns list | grep tern-test || true)" ] || fail "down left namespaces"
[ -z "$(ip -o link | grep tern-test || true)" ] || fail "down left devices"
echo ok
