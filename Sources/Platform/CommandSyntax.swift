internal import CLinux
internal import Glibc

/// One option of a command: `--name VALUE` or `--name`.
package struct CommandOption: Sendable {
    package let name: String
    package let short: Character?
    /// The value's word in the help text; nil for a switch.
    package let value: String?
    package let help: String

    package init(_ name: String, short: Character? = nil, value: String? = nil, help: String) {
        self.name = name
        self.short = short
        self.value = value
        self.help = help
    }
}

/// A command line by GNU's conventions, read with glibc's `getopt_long`: `--help` and `--version` are always there.
package struct CommandSyntax: Sendable {
    package let program: String
    /// One sentence.
    package let summary: String
    /// What stands after the options: "EPISODE…"; empty when nothing may.
    package let operands: String
    package let options: [CommandOption]
    /// A line that works when it is typed.
    package let example: String

    package init(program: String, summary: String, operands: String = "", options: [CommandOption], example: String) {
        self.program = program
        self.summary = summary
        self.operands = operands
        self.options =
            options + [
                CommandOption("help", short: "h", help: "print this text"),
                CommandOption("version", help: "print the version"),
            ]
        self.example = example
    }

    /// What was typed.
    package struct Parsed: Sendable {
        private var values: [String: [String]] = [:]
        package fileprivate(set) var operands: [String] = []

        fileprivate mutating func add(_ name: String, _ value: String) { values[name, default: []].append(value) }

        /// The last value given for an option.
        package func value(_ name: String) -> String? { values[name]?.last }

        /// Each value given for an option.
        package func all(_ name: String) -> [String] { values[name] ?? [] }

        package func has(_ name: String) -> Bool { values[name] != nil }
    }

    /// Reads the words after the program's (and the subcommand's) name.
    package func parse(_ words: [String]) throws(UsageError) -> Parsed {
        var strings: [UnsafeMutablePointer<CChar>?] = ([program] + words).map { strdup($0) } + [nil]
        // getopt reorders the pointers, so the strings are freed by their first places.
        let owned = strings
        defer { owned.forEach { free($0) } }
        let names = options.map { strdup($0.name) }
        defer { names.forEach { free($0) } }
        let table = zip(options, names).map { option, name in
            clinux_option(
                name: name, takes_value: option.value == nil ? 0 : 1,
                short_name: Int32(option.short?.asciiValue ?? 0))
        }
        var parsed = Parsed()
        clinux_getopt_reset()
        while true {
            let before = Int(clinux_optind())
            let found = strings.withUnsafeMutableBufferPointer { argv in
                clinux_getopt(Int32(words.count + 1), argv.baseAddress, table, Int32(table.count))
            }
            if found == -1 { break }
            if found < 0 {
                let place = max(1, min(words.count, max(before, Int(clinux_optind()) - 1)))
                let word = strings[place].map { String(cString: $0) } ?? ""
                throw UsageError(program: program, message: Self.problem(found, word))
            }
            let option = options[Int(found)]
            parsed.add(option.name, option.value == nil ? "" : clinux_optarg().map { String(cString: $0) } ?? "")
        }
        for place in Int(clinux_optind())..<(words.count + 1) {
            if let word = strings[place] { parsed.operands.append(String(cString: word)) }
        }
        if operands.isEmpty, !parsed.has("help"), let extra = parsed.operands.first {
            throw UsageError(program: program, message: "'\(extra)' is not expected here")
        }
        return parsed
    }

    private static func problem(_ code: Int32, _ word: String) -> String {
        switch code {
        case -3: "'\(word)' needs a value"
        case -4: "'\(word)' takes no value"
        default: "'\(word)' is not an option here"
        }
    }

    /// The text of `--help`.
    package var help: String {
        var lines = ["Usage: \(program) [OPTION]…\(operands.isEmpty ? "" : " \(operands)")", summary, ""]
        let left = options.map { option -> String in
            let short = option.short.map { "-\($0), " } ?? "    "
            return "  \(short)--\(option.name)\(option.value.map { "=\($0)" } ?? "")"
        }
        let width = (left.map(\.count).max() ?? 0) + 2
        for (name, option) in zip(left, options) {
            lines.append(name + String(repeating: " ", count: width - name.count) + option.help)
        }
        lines += ["", "Example: \(example)"]
        return lines.joined(separator: "\n") + "\n"
    }
}

/// The command line is wrong; the exit code is 2.
package struct UsageError: Error, Sendable, CustomStringConvertible {
    package let program: String
    package let message: String

    package init(program: String, message: String) {
        self.program = program
        self.message = message
    }

    package var description: String { "\(program): \(message)\nTry '\(program) --help'." }
}

/// What a program's exit says.
package enum ExitCode: Int32, Sendable {
    case good = 0
    /// The take or the job failed.
    case failed = 1
    case usage = 2
    /// No agent, no episode, no such thing.
    case notFound = 3
    /// A lease, a key, a policy or a state forbids it.
    case refused = 4
}
