internal import Protocol
package import Timing

/// What the operator sees of the rig while a take runs; pure.
package enum RigTable {
    /// The live table: a head, and for each host a line and its streams.
    package static func lines(_ view: RigView, width: Int, color: Bool) -> [String] {
        var lines: [String] = []
        if let take = view.take { lines.append(head(take, width, color)) }
        var table = TextTable([.left, .left, .left, .right, .right, .right, .right])
        table.add(["HOST", "STREAM", "STATE", "SAMPLES", "RATE", "DROPPED", "BYTES"].map { TextCell($0, .dim) })
        for host in shown(view) {
            table.add([TextCell(host.host.rawValue, .bold), "", state(host)])
            for stream in host.status?.streams ?? [] { table.add(row(stream)) }
        }
        return lines + table.lines(width: width, color: color)
    }

    /// For a pipe: one line for each host.
    package static func plain(_ view: RigView) -> [String] {
        let time = view.take.map { "\(clock($0.elapsed)) \($0.phase.rawValue)" } ?? "-"
        return shown(view).map { host in
            let streams = (host.status?.streams ?? []).map { stream in
                "\(stream.id) \(stream.state.rawValue) \(stream.samples) \(rate(stream.rate))/s \(stream.dropped) dropped "
                    + ByteCount.text(stream.bytes)
            }
            let text = ([state(host).text] + streams).joined(separator: "; ")
            return "\(time)  \(host.host): \(text)"
        }
    }

    /// The hosts of the take; a host that joins the rig while it runs has no part in it.
    private static func shown(_ view: RigView) -> [RigView.Host] {
        view.hosts.filter { view.take == nil ? $0.isExpected : $0.phase != nil }
    }

    /// "00:05.2", "-00:01.3", "1:02:03.0".
    package static func clock(_ elapsed: Interval?) -> String {
        guard let elapsed else { return "--:--.-" }
        let tenths = elapsed.magnitude.nanoseconds / 100_000_000
        let (hours, minutes, seconds) = (tenths / 36_000, tenths / 600 % 60, tenths / 10 % 60)
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let text = "\(two(minutes)):\(two(seconds)).\(tenths % 10)"
        return "\(elapsed < .zero ? "-" : "")\(hours > 0 ? "\(hours):" : "")\(text)"
    }

    /// "±12 µs", "±1.2 ms"; "±?" while nothing is known.
    package static func bound(_ bound: Interval?) -> String {
        guard let bound else { return "±?" }
        let us = (bound.nanoseconds + 500) / 1000
        if us < 1000 { return "±\(us) µs" }
        let tenths = (us + 50) / 100
        return "±\(tenths / 10).\(tenths % 10) ms"
    }

    private static func head(_ take: RigView.Take, _ width: Int, _ color: Bool) -> String {
        let duration = take.duration.map { " / \(clock($0))" } ?? ""
        let task = take.task.isEmpty ? "" : " · \(take.task)"
        let text =
            "\(take.episode)  \(take.session)\(task)  \(take.phase.rawValue) \(clock(take.elapsed))\(duration)  "
            + "leader \(take.leader)"
        let cut = String(text.prefix(max(1, width)))
        return color ? TextTable.paint(cut, take.phase == .recording ? .red : .bold) : cut
    }

    /// Presence, clock, disk, and what comes home, in one cell.
    static func state(_ host: RigView.Host) -> TextCell {
        if let problem = host.problem { return TextCell(problem.text, .red) }
        switch host.presence {
        case .absent: return TextCell("absent", .red)
        case .connecting: return TextCell("connecting", .yellow)
        case .lost(let reason): return TextCell("lost: \(reason)", .red)
        case .alive: break
        }
        var parts = [host.phase.map { words($0) } ?? host.status?.state.rawValue ?? "connected"]
        if let ingest = host.ingest, host.phase == .ingesting {
            let percent = ingest.total > 0 ? Int(Double(ingest.done) / Double(ingest.total) * 100) : 100
            parts = ["coming home \(min(100, max(0, percent))) % of \(ByteCount.text(ingest.total))"]
        }
        parts.append("clock \(bound(host.clockBound))")
        if let free = host.status?.freeBytes { parts.append("\(ByteCount.text(free)) free") }
        return TextCell(parts.joined(separator: ", "))
    }

    private static func words(_ phase: TakeHostPhase) -> String {
        switch phase {
        case .committed: "recording"
        case .ingested: "home"
        default: phase.rawValue
        }
    }

    private static func row(_ stream: StreamStatus) -> [TextCell] {
        let color: TextColor? =
            switch stream.state {
            case .streaming: .green
            case .failed: .red
            case .stalled: .yellow
            default: nil
            }
        let isSlow = stream.nominalRate.map { stream.rate < $0 * 0.9 } ?? false
        return [
            "", TextCell(stream.id.rawValue), TextCell(stream.error ?? stream.state.rawValue, color),
            TextCell("\(stream.samples)"),
            TextCell(rate(stream.rate), isSlow && stream.state == .streaming ? .yellow : nil),
            TextCell("\(stream.dropped)", stream.dropped > 0 ? .yellow : nil), TextCell(ByteCount.text(stream.bytes)),
        ]
    }

    /// "29.9", "48000".
    static func rate(_ rate: Double) -> String {
        guard rate.isFinite, rate >= 0, rate < 1e12 else { return "-" }
        if rate >= 1000 { return "\(Int(rate.rounded()))" }
        let tenths = Int((rate * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
