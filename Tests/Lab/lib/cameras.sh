# The stage `cameras` of the lab `drivers`, which sources it.

cameras() {
    out=$work/cameras
    mkdir -p "$out/pictures"
    # What the webcams see; each frame gets its own number on top.
    ffmpeg -v error -f lavfi -i testsrc2=size=640x480:rate=30 -frames:v 32 -q:v 6 "$out/pictures/%02d.jpg" </dev/null ||
        { echo "drivers: ffmpeg makes no pictures" >&2; return; }
    boot cameras-guest.sh cameras-agent.json5
    record_status= episode=
    await_file "$out/network" 600 && record 60
    : >"$out/finished"
    guest_wait "$out"
    local status=$?
    judge cameras_guest_status "$status" '==' 0
    cat "$out/log"
    # The take is red, since a camera was away for a quarter of a minute: 1 is the right answer.
    judge cameras_exit_code "$record_status" '==' 1
    local name value comparison goal
    while read -r name value comparison goal; do judge "cameras_$name" "$value" "$comparison" "$goal"; done < <(
        [ -n "$episode" ] && /usr/bin/python3 "$lab_root/check_cameras.py" \
            "$DOWNBEAT_HOME/sessions/drivers/$episode/hosts/driver-pc" "$out" || echo "files_checked 0 == 1")
}
