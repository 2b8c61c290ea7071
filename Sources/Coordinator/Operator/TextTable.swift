/// A colour of a terminal, where there is one.
package enum TextColor: String, Sendable {
    case red = "31"
    case green = "32"
    case yellow = "33"
    case dim = "2"
    case bold = "1"
}

/// One piece of a table's row.
package struct TextCell: Sendable, Hashable, ExpressibleByStringInterpolation {
    package var text: String
    package var color: TextColor?

    package init(_ text: String, _ color: TextColor? = nil) {
        self.text = text
        self.color = color
    }

    package init(stringLiteral value: String) { self.init(value) }
}

/// Text in columns: two spaces apart, each as wide as its widest cell; pure.
package struct TextTable: Sendable {
    package enum Alignment: Sendable { case left, right }

    private let alignments: [Alignment]
    private var rows: [[TextCell]] = []

    /// One alignment for each column; a row may have fewer cells.
    package init(_ alignments: [Alignment]) { self.alignments = alignments }

    package mutating func add(_ cells: [TextCell]) { rows.append(cells) }

    /// The lines, cut to a width where one is given, with the escape sequences of colours or without.
    package func lines(width: Int? = nil, color: Bool = false) -> [String] {
        var widths = [Int](repeating: 0, count: alignments.count)
        for row in rows {
            for (column, cell) in row.enumerated() where column < widths.count {
                widths[column] = max(widths[column], cell.text.count)
            }
        }
        return rows.map { row in
            var line = ""
            var used = 0
            for (column, cell) in row.enumerated() where column < widths.count {
                let isLast = column == row.count - 1
                let space = String(repeating: " ", count: widths[column] - cell.text.count)
                var text = alignments[column] == .right ? space + cell.text : isLast ? cell.text : cell.text + space
                if column > 0 { text = "  " + text }
                if let width { text = String(text.prefix(max(0, width - used))) }
                used += text.count
                line += color && cell.color != nil ? TextTable.paint(text, cell.color) : text
            }
            return color ? line : TextTable.trimmed(line)
        }
    }

    /// A text in a colour.
    package static func paint(_ text: String, _ color: TextColor?) -> String {
        guard let color else { return text }
        return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
    }

    private static func trimmed(_ line: String) -> String {
        var line = line
        while line.last == " " { line.removeLast() }
        return line
    }
}
