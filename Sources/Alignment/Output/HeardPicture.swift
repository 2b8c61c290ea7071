internal import Episode
internal import Protocol

/// A picture of what was heard when: a row for each recording, on the common clock.
///
/// An SVG without anything from outside. Marks are the arrivals with their sweep and confidence; a hollow one is of a clock
/// that isn't placed by its own. Triangles are what a host's stamps say that it played.
struct HeardPicture {
    let streams: [LoadedStream]
    let alignment: Alignment
    let map: FrameMap
    let heard: [SoundHearing]
    let points: [HostPoint]

    private static let width = 1200.0
    private static let left = 190.0
    private static let right = 30.0
    private static let rowHeight = 54.0
    private static let top = 64.0

    /// One line of the picture, in ns of the common clock.
    private struct Row {
        let label: String
        let sub: String
        let span: ClosedRange<Int64>?
        let chirps: [(time: Int64, chirp: HeardChirp)]
        let played: [(time: Int64, word: String)]
        let problem: String?
    }

    var svg: String {
        let rows = heard.map(row)
        let times = rows.flatMap { row in
            [row.span?.lowerBound, row.span?.upperBound].compactMap { $0 } + row.chirps.map(\.time)
        }
        guard let start = times.min(), let end = times.max(), end > start else { return frame(rows, 0, 1, "") }
        let body = rows.enumerated().map { index, row in draw(row, index, start, end) }.joined(separator: "\n")
        return frame(rows, start, end, axis(rows.count, start, end) + "\n" + body)
    }

    private func row(_ hearing: SoundHearing) -> Row {
        let clock = hearing.source.clock
        let line = alignment.timeline(clock)
        let point = points.first { clock == .host($0.host) }
        let placement = alignment.placements[clock]
        let doubt = placement?.uncertainty.map { " ±\(Words.length($0))" } ?? ""
        return Row(
            label: hearing.source.id,
            sub: (placement.map { $0.method.rawValue.split(separator: "_").joined(separator: " ") } ?? "not placed")
                + doubt,
            span: hearing.span.flatMap { span in
                let (a, b) = (line.common(span.lowerBound), line.common(span.upperBound))
                return a <= b ? a...b : nil
            }, chirps: hearing.chirps.map { (line.common($0.time), $0) },
            played: (point?.emissions ?? []).map { (line.common($0.at), Self.arrow($0.spec)) },
            problem: hearing.problem)
    }

    private static func arrow(_ spec: ChirpSpec) -> String { spec.toHz > spec.fromHz ? "up" : "down" }

    private static func x(_ time: Int64, _ start: Int64, _ end: Int64) -> Double {
        let share = Double(time &- start) / Double(max(end &- start, 1))
        return left + min(max(share, -0.01), 1.01) * (width - left - right)
    }

    private func draw(_ row: Row, _ index: Int, _ start: Int64, _ end: Int64) -> String {
        let y = Self.top + Double(index) * Self.rowHeight + Self.rowHeight / 2
        var parts = [
            text(12, y - 4, row.label, "label"), text(12, y + 12, row.sub, "sub"),
        ]
        if let span = row.span {
            let (a, b) = (Self.x(span.lowerBound, start, end), Self.x(span.upperBound, start, end))
            parts.append(
                "<rect class=\"sound\" x=\"\(n(a))\" y=\"\(n(y - 9))\" width=\"\(n(max(b - a, 1)))\" height=\"18\"/>")
        }
        for (time, word) in row.played {
            let x = Self.x(time, start, end)
            parts.append(
                "<path class=\"played\" d=\"M\(n(x)) \(n(y + 11))l-5 9h10z\"><title>played: \(word)</title></path>")
        }
        for (time, chirp) in row.chirps {
            let x = Self.x(time, start, end)
            let sweep = Self.arrow(chirp.spec)
            let seconds = Double(time &- start) / 1e9
            parts.append(
                """
                <g class="\(sweep)"><line x1="\(n(x))" x2="\(n(x))" y1="\(n(y - 16))" y2="\(n(y + 9))"/>\
                <circle cx="\(n(x))" cy="\(n(y - 16))" r="\(n(2.5 + 3.5 * chirp.confidence))"/>\
                <title>\(escape(chirp.word)) Hz at \(n(seconds, 6)) s ±\(Words.length(Int64(min(max(chirp.deviation, 0), 1e15)))), \
                \(n(chirp.signalToNoise)) dB, confidence \(n(chirp.confidence, 2))</title></g>
                """)
        }
        if let problem = row.problem, row.chirps.isEmpty {
            parts.append(text(Self.left + 6, y + 4, problem, "problem"))
        }
        return parts.joined(separator: "\n")
    }

    private func axis(_ rows: Int, _ start: Int64, _ end: Int64) -> String {
        let seconds = Double(end &- start) / 1e9
        var step = 0.1
        for candidate in [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 86_400]
        where seconds / step > 12 { step = candidate }
        let bottom = Self.top + Double(rows) * Self.rowHeight
        var parts: [String] = []
        for index in 0...Int(min(seconds / step, 40)) {
            let at = Double(index) * step
            let x = Self.left + at / max(seconds, 1e-9) * (Self.width - Self.left - Self.right)
            parts.append(
                "<line class=\"grid\" x1=\"\(n(x))\" x2=\"\(n(x))\" y1=\"\(n(Self.top))\" y2=\"\(n(bottom))\"/>")
            parts.append(text(x, bottom + 16, "\(n(at, step < 1 ? 1 : 0)) s", "tick"))
        }
        return parts.joined(separator: "\n")
    }

    private func frame(_ rows: [Row], _ start: Int64, _ end: Int64, _ body: String) -> String {
        let height = Self.top + Double(rows.count) * Self.rowHeight + 34
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(n(Self.width)) \(n(height))" font-family="sans-serif">
            <style>
            text { font-size: 12px; fill: #222; } .label { font-weight: 600; } .sub { fill: #666; font-size: 11px; }
            .title { font-size: 15px; font-weight: 600; } .tick { fill: #666; text-anchor: middle; }
            .problem { fill: #a01818; } .grid { stroke: #e4e4e4; } .sound { fill: #e8eef4; }
            .up line, .up circle { stroke: #1f5fa8; fill: #1f5fa8; } .down line, .down circle { stroke: #b4500f; fill: #b4500f; }
            .played { fill: #17692f; }
            </style>
            <rect width="100%" height="100%" fill="white"/>
            \(text(12, 24, "What was heard when, on the clock '\(alignment.common)'", "title"))
            \(text(12, 44, "blue: sweeps up, brown: sweeps down, larger: surer; green: played by this host", "sub"))
            \(body)
            </svg>

            """
    }

    private func text(_ x: Double, _ y: Double, _ words: String, _ style: String) -> String {
        "<text class=\"\(style)\" x=\"\(n(x))\" y=\"\(n(y))\">\(escape(words))</text>"
    }

    private func n(_ value: Double, _ digits: Int = 1) -> String {
        guard value.isFinite, abs(value) < 1e12 else { return "0" }
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let text = ((value * scale).rounded() / scale).description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// Names come from other machines: none of them may become markup.
    private func escape(_ text: String) -> String {
        var safe = ""
        for scalar in text.unicodeScalars.prefix(200) {
            switch scalar {
            case "&": safe += "&amp;"
            case "<": safe += "&lt;"
            case ">": safe += "&gt;"
            case "\"": safe += "&quot;"
            default: if scalar.value >= 0x20 { safe.unicodeScalars.append(scalar) }
            }
        }
        return safe
    }
}
