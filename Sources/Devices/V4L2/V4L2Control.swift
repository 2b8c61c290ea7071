/// One thing that can be set on a camera.
package struct V4L2Control: Sendable, Hashable {
    package enum Kind: Sendable, Hashable { case integer, boolean, menu, wide }

    /// `V4L2_CID_*`.
    package var id: UInt32
    /// The driver's words: "Exposure, Dynamic Framerate".
    package var title: String
    package var kind: Kind
    package var range: ClosedRange<Int64>
    /// What the driver has as default.
    package var fallback: Int64
    package var isReadOnly: Bool
    /// Another control has taken it over, as an automatic exposure does with the exposure time.
    package var isInactive: Bool
    /// The words of a menu's entries.
    package var menu: [Int64: String]

    package init(
        id: UInt32, title: String, kind: Kind, range: ClosedRange<Int64>, fallback: Int64 = 0,
        isReadOnly: Bool = false, isInactive: Bool = false, menu: [Int64: String] = [:]
    ) {
        self.id = id
        self.title = title
        self.kind = kind
        self.range = range
        self.fallback = fallback
        self.isReadOnly = isReadOnly
        self.isInactive = isInactive
        self.menu = menu
    }

    /// As `v4l2-ctl` writes it: "exposure_dynamic_framerate".
    package var name: String { Self.name(of: title) }

    /// Lower-case letters and digits; whatever is between them is one underscore.
    package static func name(of title: String) -> String {
        var name = ""
        var gap = false
        for scalar in title.unicodeScalars {
            guard scalar.isASCII, scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) else {
                gap = !name.isEmpty
                continue
            }
            if gap { name.append("_") }
            gap = false
            name += String(scalar).lowercased()
        }
        return name
    }

    /// The value in words of its kind: a menu's entry, true or false, or the number.
    package func words(_ value: Int64) -> String {
        switch kind {
        case .boolean: value == 0 ? "false" : "true"
        case .menu: menu[value].map { "\(value) (\($0))" } ?? "\(value)"
        case .integer, .wide: "\(value)"
        }
    }

    /// The names that kernels before 6.0 had for the same controls.
    static let formerNames = [
        "exposure_auto": "auto_exposure", "exposure_auto_priority": "exposure_dynamic_framerate",
        "exposure_absolute": "exposure_time_absolute", "white_balance_temperature_auto": "white_balance_automatic",
        "focus_auto": "focus_automatic_continuous",
    ]

    /// Whether a configuration means this control: by this kernel's name or by the other kernels' one.
    package func isNamed(_ wanted: String) -> Bool {
        let now = Self.formerNames[name] ?? name
        return name == wanted || now == (Self.formerNames[wanted] ?? wanted)
    }
}

/// What a configuration wants of one control.
package struct ControlWish: Sendable, Hashable {
    package enum Value: Sendable, Hashable, CustomStringConvertible {
        case number(Int64)
        /// Of a menu.
        case word(String)

        package var description: String {
            switch self {
            case .number(let value): "\(value)"
            case .word(let text): text
            }
        }
    }

    package var name: String
    package var value: Value

    package init(_ name: String, _ value: Value) {
        self.name = name
        self.value = value
    }
}
