/// Which hand a glove is for.
package enum GloveSide: String, Sendable, Hashable, CaseIterable {
    case left, right

    /// From an advertised name: the side must be a whole word of it, since OGLO_BRIGHT is no right glove.
    ///
    /// Only a hint: the glove's configuration says what it is.
    package init?(name: String) {
        let words = name.lowercased().split { !$0.isLetter }
        switch (words.contains("left"), words.contains("right")) {
        case (true, false): self = .left
        case (false, true): self = .right
        default: return nil
        }
    }

    /// The fingers in the order in which the glove sends them when its configuration doesn't say.
    package var fingers: [String] {
        let thumbFirst = ["thumb", "index", "middle", "ring", "pinky"]
        return self == .right ? thumbFirst : thumbFirst.reversed()
    }
}

/// The kinds of rows that a glove has.
package enum GloveModality: String, Sendable, Hashable, CaseIterable {
    /// The counts of the taxels.
    case tactile
    /// Acceleration and angular rate of the wrist.
    case imu
    /// The magnetic field at the wrist.
    case mag
}

/// One row of a glove as it was sent.
package struct GloveReading: Sendable, Hashable {
    package var modality: GloveModality
    /// The glove's count of its samples; nil when its packets have none.
    package var sequence: UInt32?
    /// Microseconds on the glove's clock, which begins anew every 71.6 minutes.
    package var counter: UInt32
    package var values: [Int32]

    package init(_ modality: GloveModality, sequence: UInt32?, counter: UInt32, values: [Int32]) {
        self.modality = modality
        self.sequence = sequence
        self.counter = counter
        self.values = values
    }
}
