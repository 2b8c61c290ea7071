/// The output rates of a WitMotion sensor, by the code of its register 3.
package enum WitMotionRate: UInt8, Sendable, CaseIterable {
    case hz0_2 = 1
    case hz0_5, hz1, hz2, hz5, hz10, hz20, hz50, hz100, hz125, hz200

    package var hertz: Double {
        switch self {
        case .hz0_2: 0.2
        case .hz0_5: 0.5
        case .hz1: 1
        case .hz2: 2
        case .hz5: 5
        case .hz10: 10
        case .hz20: 20
        case .hz50: 50
        case .hz100: 100
        case .hz125: 125
        case .hz200: 200
        }
    }

    package init?(hertz: Double) {
        guard let rate = Self.allCases.first(where: { $0.hertz == hertz }) else { return nil }
        self = rate
    }
}

/// What a host writes to a WitMotion sensor: FF AA, register, value.
package enum WitMotionCommand: Sendable, Hashable {
    /// Allows changes for some seconds; needed before each of them.
    case unlock
    case setRate(UInt8)
    /// Asks for a register's value; the answer is a frame of kind 0x71.
    case read(register: UInt8)

    package var bytes: [UInt8] {
        switch self {
        case .unlock: [0xFF, 0xAA, 0x69, 0x88, 0xB5]
        case .setRate(let code): [0xFF, 0xAA, 0x03, code, 0x00]
        case .read(let register): [0xFF, 0xAA, 0x27, register, 0x00]
        }
    }

    /// Nil for what isn't one of these.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == 5, bytes[0] == 0xFF, bytes[1] == 0xAA else { return nil }
        switch (bytes[2], bytes[3], bytes[4]) {
        case (0x69, 0x88, 0xB5): self = .unlock
        case (0x03, let code, 0): self = .setRate(code)
        case (0x27, let register, 0): self = .read(register: register)
        default: return nil
        }
    }
}
