internal import Platform
internal import Protocol
internal import Timing

/// `report.html`: the verdict for a person, in one file without anything from outside.
package enum VerdictReport {
    package static func write(_ verdict: EpisodeVerdict, to path: String) throws {
        try AtomicFile.write(html(verdict), to: path)
    }

    package static func html(_ verdict: EpisodeVerdict) -> String {
        let title = "\(escape(verdict.session)) · \(escape(verdict.episode))"
        let length = verdict.durationSeconds.map { " · \(VerdictRules.tenths($0)) s" } ?? ""
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(title)</title>
            <style>
            body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; color: #222; }
            h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
            table { border-collapse: collapse; width: 100%; }
            th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
            td.number { text-align: right; font-variant-numeric: tabular-nums; }
            .green { color: #17692f; } .amber { color: #8a5a00; } .red { color: #a01818; }
            .word { font-weight: 600; }
            ul { padding-left: 1.2rem; }
            </style>
            </head>
            <body>
            <h1>\(word(verdict.color)) \(title)\(length)</h1>
            \(list(verdict.reasons))
            \(verdict.hosts.map(section).joined(separator: "\n"))
            \(verdict.witness.map(section) ?? "")
            </body>
            </html>

            """
    }

    private static func section(_ host: EpisodeVerdict.Host) -> String {
        let clock = host.clockBoundMicroseconds.map { "clock within \(VerdictRules.tenths($0)) µs" } ?? "clock unknown"
        let gate = host.gateLatencyMicroseconds.map {
            " · began \(VerdictRules.tenths($0)) µs after T0"
                + (host.hasRealtimePriority == false ? " (without real-time priority)" : "")
        }
        let rows = host.streams.map { stream in
            """
            <tr><td>\(word(stream.color))</td><td>\(escape(stream.id))</td><td>\(stream.kind.rawValue)</td>\
            <td class="number">\(stream.samples)</td><td class="number">\(stream.expected.map(String.init) ?? "–")</td>\
            <td class="number">\(stream.dropped)</td>\
            <td class="number">\(VerdictRules.tenths(stream.largestGapMilliseconds)) ms</td>\
            <td class="number">\(stream.firstAfterStartMilliseconds.map { "\(VerdictRules.tenths($0)) ms" } ?? "–")</td>\
            <td>\(stream.reasons.map { escape($0.text) }.joined(separator: "<br>"))</td></tr>
            """
        }
        return """
            <h2>\(word(host.color)) \(escape(host.id)) · \(clock)\(gate ?? "")</h2>
            \(list(host.reasons))
            <table>
            <tr><th></th><th>stream</th><th>kind</th><th>samples</th><th>expected</th><th>dropped</th><th>largest gap</th>\
            <th>first after T0</th>\
            <th></th></tr>
            \(rows.joined(separator: "\n"))
            </table>
            """
    }

    private static func section(_ witness: SoundWitness) -> String {
        func figure(_ value: Interval?) -> String { value.map { VerdictRules.text($0) } ?? "–" }
        let pairs = witness.pairs.map { pair in
            let color: VerdictColor = pair.opinion == .agree ? .green : pair.opinion == .disagree ? .red : .amber
            let opinion = pair.opinion.rawValue.split(separator: "_").joined(separator: " ")
            let distance = pair.distance.flatMap { metres in
                pair.isOneWay
                    ? nil
                    : "\(VerdictRules.tenths(metres * 100)) ± \(VerdictRules.tenths((pair.distanceUncertainty ?? 0) * 100)) cm"
            }
            return """
                <tr><td class="word \(color.rawValue)">\(opinion)</td><td>\(escape(pair.first))</td>\
                <td>\(escape(pair.second))</td><td class="number">\(figure(pair.difference?.magnitude))</td>\
                <td class="number">\(figure(pair.limit))</td><td class="number">\(figure(pair.networkBound))</td>\
                <td class="number">\(figure(pair.soundUncertainty))</td><td class="number">\(distance ?? "–")</td>\
                <td>\(pair.isOneWay ? "one way" : "both ways")</td></tr>
                """
        }
        let ears = witness.ears.map { ear in
            """
            <tr><td>\(escape(ear.host))</td><td>\(escape(ear.stream ?? "–"))</td><td class="number">\(ear.chirps)</td>\
            <td class="number">\(ear.cardSkew.map { "\(VerdictRules.tenths($0)) ppm" } ?? "–")</td>\
            <td>\(escape(ear.problem ?? ""))</td></tr>
            """
        }
        return """
            <h2>Clocks by network and by sound</h2>
            <table>
            <tr><th></th><th>host</th><th>host</th><th>difference</th><th>allowed</th><th>network bound</th>\
            <th>sound ±</th><th>distance</th><th>heard</th></tr>
            \(pairs.joined(separator: "\n"))
            </table>
            <table>
            <tr><th>host</th><th>microphone</th><th>chirps</th><th>card against host</th><th></th></tr>
            \(ears.joined(separator: "\n"))
            </table>
            """
    }

    private static func word(_ color: VerdictColor) -> String {
        "<span class=\"word \(color.rawValue)\">\(color.rawValue)</span>"
    }

    private static func list(_ reasons: [EpisodeVerdict.Reason]) -> String {
        guard !reasons.isEmpty else { return "" }
        let items = reasons.map { "<li class=\"\($0.color.rawValue)\">\(escape($0.text))</li>" }
        return "<ul>\(items.joined())</ul>"
    }

    /// Names come from other machines: none of them may become markup.
    private static func escape(_ text: String) -> String {
        var safe = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": safe += "&amp;"
            case "<": safe += "&lt;"
            case ">": safe += "&gt;"
            case "\"": safe += "&quot;"
            case "'": safe += "&#39;"
            default: safe.unicodeScalars.append(scalar)
            }
        }
        return safe
    }
}
