internal import Coordinator
internal import Platform
internal import Synchronization
internal import Timing

/// Shows the rig while something goes on: a table that is drawn over on a terminal, plain lines elsewhere.
///
/// Concurrency: the state is in one `Mutex`; lines come from several tasks.
final class LivePrinter: Sendable {
    enum Place: Sendable { case output, errors, nowhere }

    private struct State {
        var drawn = 0
        var lastPlain = ""
        var lastSecond: Int64 = -1
    }

    private let place: Place
    private let isTerminal: Bool
    private let color: Bool
    private let state = Mutex(State())

    /// With `errors` everything goes to standard error as plain lines: standard output is a program's then.
    ///
    /// `nowhere` is for commands that list what is wrong themselves.
    init(_ place: Place = .output) {
        self.place = place
        isTerminal = place == .output && StandardOutput.isTerminal
        color = place == .output && Surroundings.hasColor
    }

    /// Shows the rig as it is now.
    func show(_ view: RigView) {
        if isTerminal {
            let lines = RigTable.lines(view, width: max(20, StandardOutput.columns - 1), color: color)
            state.withLock { state in
                write(erase(&state) + lines.map { $0 + "\n" }.joined())
                state.drawn = lines.count
            }
            return
        }
        // A line a second, and one at each change of what the take is doing.
        let second = (view.take?.elapsed?.nanoseconds ?? 0) / 1_000_000_000
        let phase = view.take?.phase.rawValue ?? ""
        let lines = RigTable.plain(view)
        state.withLock { state in
            guard phase != state.lastPlain || second != state.lastSecond else { return }
            (state.lastPlain, state.lastSecond) = (phase, second)
            write(lines.map { $0 + "\n" }.joined())
        }
    }

    func note(_ note: TakeNote) {
        let word: TextColor =
            switch note.level {
            case .info: .dim
            case .warning: .yellow
            case .error: .red
            }
        line("\(color ? TextTable.paint(note.level.rawValue, word) : note.level.rawValue): \(note)")
    }

    /// Prints a line above the table.
    func line(_ text: String) {
        state.withLock { state in
            write(erase(&state) + text + "\n")
            state.drawn = 0
        }
    }

    /// Leaves the table as it is; what follows is printed below it.
    func leave() { state.withLock { $0.drawn = 0 } }

    private func erase(_ state: inout State) -> String {
        guard isTerminal, state.drawn > 0 else { return "" }
        return "\u{1B}[\(state.drawn)A\u{1B}[J"
    }

    private func write(_ text: String) {
        switch place {
        case .output: StandardOutput.write(text)
        case .errors: StandardError.write(text)
        case .nowhere: break
        }
    }
}
