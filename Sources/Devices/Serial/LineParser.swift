/// Numbers out of a sensor's line, by a layout.
///
/// Pure; nothing in a line can crash it.
package struct LineParser: Sendable {
    package struct Row: Sendable, Hashable {
        package var values: [Double]
        package var counter: UInt64?
        package var sequence: UInt64?

        package init(values: [Double], counter: UInt64? = nil, sequence: UInt64? = nil) {
            self.values = values
            self.counter = counter
            self.sequence = sequence
        }
    }

    package enum Outcome: Sendable, Hashable {
        case row(Row)
        /// A line of another kind: not of this sensor, a comment, a heading.
        case other
        /// A line of this sensor that is damaged.
        case damaged
    }

    package let layout: LineLayout
    private let places: [LineLayout.Place]

    package init(_ layout: LineLayout) {
        self.layout = layout
        places =
            layout.channels.map(\.place) + [layout.counter?.place, layout.sequence].compactMap { $0 }
    }

    package func parse(_ line: [UInt8]) -> Outcome {
        guard line.starts(with: layout.prefix) else { return .other }
        let body = DecimalText.trimmed(line[layout.prefix.count...])
        let found: [ArraySlice<UInt8>?]
        switch layout.format {
        case .csv:
            // A heading, a comment, a boot message.
            if layout.prefix.isEmpty, let first = body.first, !Self.beginsNumber(first) { return .other }
            found = fields(body)
        case .json:
            guard body.first == UInt8(ascii: "{") else { return layout.prefix.isEmpty ? .other : .damaged }
            var scanner = JSONNumberScanner(places.map { if case .key(let key) = $0 { key } else { [] } })
            guard scanner.scan(body) else { return .damaged }
            found = scanner.found
        }
        return row(found)
    }

    // MARK: Private

    private func row(_ found: [ArraySlice<UInt8>?]) -> Outcome {
        var row = Row(values: [])
        row.values.reserveCapacity(layout.channels.count)
        for (index, channel) in layout.channels.enumerated() {
            guard let text = found[index], let number = DecimalText.double(text) else { return .damaged }
            row.values.append((number + channel.offset) * channel.scale)
        }
        var next = layout.channels.count
        if let counter = layout.counter {
            guard let text = found[next], let count = DecimalText.count(text, perUnit: counter.ticksPerUnit) else {
                return .damaged
            }
            row.counter = count
            next += 1
        }
        if layout.sequence != nil {
            guard let text = found[next], let count = DecimalText.count(text) else { return .damaged }
            row.sequence = count
        }
        return .row(row)
    }

    /// The wanted fields of a CSV line; nil for those that it doesn't have.
    private func fields(_ body: ArraySlice<UInt8>) -> [ArraySlice<UInt8>?] {
        var found = [ArraySlice<UInt8>?](repeating: nil, count: places.count)
        var (number, start) = (0, body.startIndex)
        let isBlank = layout.separator == 0x20
        for end in body.startIndex...body.endIndex {
            let isEnd = end == body.endIndex
            guard isEnd || body[end] == layout.separator || isBlank && body[end] == 0x09 else { continue }
            defer { start = isEnd ? end : end + 1 }
            if isBlank, start == end { continue }
            for (index, place) in places.enumerated() where place == .field(number) { found[index] = body[start..<end] }
            number += 1
        }
        return found
    }

    private static func beginsNumber(_ byte: UInt8) -> Bool {
        byte >= 0x30 && byte <= 0x39 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
            || byte == UInt8(ascii: ".")
    }
}
