internal import CV4L
internal import Platform
package import Protocol

/// Sets what can be set on a camera, and reads it back.
package enum CameraControls {
    /// What was asked and what it is now, and sentences where they differ.
    package struct Result: Sendable, Hashable {
        package var settings: [StreamSetting] = []
        package var findings: [String] = []
    }

    /// A control that the configuration names and that can't be set, with what could be.
    package struct Refused: Error, Sendable, Hashable {
        package var cause: String
        package var cure: String
    }

    /// Automatic controls come first: while one is on, the value that it governs can't be set.
    ///
    /// Without a word in the configuration a camera may not lengthen its frames in the dark, which halves the rate.
    package static func apply(_ wishes: [ControlWish], to port: any V4L2Port) throws(Refused) -> Result {
        var result = Result()
        var controls = port.controls()
        let standard = controls.first { $0.id == cv4l_CID_EXPOSURE_AUTO_PRIORITY }
        var all: [(V4L2Control, ControlWish)] = []
        if let standard, !standard.isReadOnly, !wishes.contains(where: { standard.isNamed($0.name) }) {
            all.append((standard, ControlWish(standard.name, .number(0))))
        }
        for wish in wishes.sorted(by: { $0.name < $1.name }) { all.append((try find(wish, among: controls), wish)) }
        all.sort { rank($0.0) == rank($1.0) ? $0.0.id < $1.0.id : rank($0.0) < rank($1.0) }
        for (control, wish) in all {
            let value = try number(wish.value, of: control)
            var refusal: Errno?
            do throws(Errno) { try port.set(control, to: value) } catch { refusal = error }
            let got = try? port.value(of: control)
            result.settings.append(
                StreamSetting(control.name, asked: control.words(value), got: got.map(control.words)))
            guard refusal != nil || (got != nil && got != value) else { continue }
            controls = port.controls()
            let now = controls.first { $0.id == control.id }
            result.findings.append(sentence(control, value, got, refusal, isInactive: now?.isInactive ?? false))
        }
        return result
    }

    private static func rank(_ control: V4L2Control) -> Int {
        switch control.kind {
        case .menu, .boolean: control.name.contains("auto") ? 0 : 1
        case .integer, .wide: 2
        }
    }

    private static func find(_ wish: ControlWish, among controls: [V4L2Control]) throws(Refused) -> V4L2Control {
        guard let control = controls.first(where: { $0.isNamed(wish.name) }) else {
            let names = controls.filter { !$0.isReadOnly }.map(\.name).joined(separator: ", ")
            throw Refused(
                cause: "the camera has no control '\(wish.name)'",
                cure: names.isEmpty ? "take it out of 'controls'" : "name one of \(names)")
        }
        guard !control.isReadOnly else {
            throw Refused(cause: "the control '\(control.name)' can only be read", cure: "take it out of 'controls'")
        }
        return control
    }

    private static func number(_ value: ControlWish.Value, of control: V4L2Control) throws(Refused) -> Int64 {
        switch value {
        case .number(let number):
            guard control.range.contains(number) else {
                throw Refused(
                    cause: "the control '\(control.name)' can't be \(number)", cure: "set it to \(legal(control))")
            }
            return number
        case .word(let word):
            let wanted = V4L2Control.name(of: word)
            guard let entry = control.menu.first(where: { V4L2Control.name(of: $0.value) == wanted }) else {
                throw Refused(
                    cause: "the control '\(control.name)' can't be '\(word)'", cure: "set it to \(legal(control))")
            }
            return entry.key
        }
    }

    /// The legal values in words.
    package static func legal(_ control: V4L2Control) -> String {
        switch control.kind {
        case .boolean: "0 or 1"
        case .menu:
            "one of \(control.menu.sorted { $0.key < $1.key }.map { "\($0.key) (\($0.value))" }.joined(separator: ", "))"
        case .integer, .wide: "a number from \(control.range.lowerBound) to \(control.range.upperBound)"
        }
    }

    private static func sentence(
        _ control: V4L2Control, _ asked: Int64, _ got: Int64?, _ refusal: Errno?, isInactive: Bool
    ) -> String {
        let state = got.map { "it is \(control.words($0))" } ?? "it can't be read"
        if isInactive {
            return
                "control '\(control.name)' can't be \(control.words(asked)) while an automatic one governs it; \(state)"
        }
        let why = refusal.map { " (\($0))" } ?? ""
        return "control '\(control.name)' was asked to be \(control.words(asked)) and isn't\(why); \(state)"
    }
}
