/// One quantity of an IIO device, and how its raw counts become units of SI: value = (raw + offset) × scale.
package struct IIOChannel: Sendable, Hashable {
    /// The attributes' common beginning: "in_accel_x".
    package var attribute: String
    /// "accel_x", "gyro_x".
    package var name: String
    package var unit: String
    package var scale: Double
    package var offset: Double

    /// The kernel's kinds (sysfs-bus-iio): our word, the unit, and what one of the kernel's units is in it.
    private static let kinds: [(prefix: String, name: String, unit: String, factor: Double)] = [
        ("accel", "accel", "m/s^2", 1),
        ("anglvel", "gyro", "rad/s", 1),
        // Gauss.
        ("magn", "mag", "T", 1e-4),
        ("gravity", "gravity", "m/s^2", 1),
        // Thousandths of a degree Celsius.
        ("temp", "temp", "degC", 1e-3),
        // Kilopascal.
        ("pressure", "pressure", "Pa", 1e3),
        ("rot", "rot", "", 1),
        ("incli", "incli", "deg", 1),
        ("humidityrelative", "humidity", "%", 1e-3),
    ]

    /// Nil for a quantity that isn't known here.
    package init?(attribute: String, scale: Double, offset: Double) {
        guard attribute.hasPrefix("in_") else { return nil }
        let words = attribute.dropFirst(3)
        for kind in Self.kinds {
            guard words == kind.prefix || words.hasPrefix("\(kind.prefix)_") else { continue }
            self.attribute = attribute
            name = kind.name + words.dropFirst(kind.prefix.count)
            unit = kind.unit
            self.scale = scale * kind.factor
            self.offset = offset
            return
        }
        return nil
    }

    package func value(_ raw: Int64) -> Double { (Double(raw) + offset) * scale }
}

/// The turn from a sensor's axes to those of the thing that it is mounted in, as the firmware says it.
package struct IIOMountMatrix: Sendable, Hashable {
    /// Rows of three.
    package var rows: [[Double]]

    /// Parses "1, 0, 0; 0, 1, 0; 0, 0, 1"; nil for what isn't that.
    package init?(_ text: String) {
        let parsed = text.split(separator: ";").map { row in
            row.split(separator: ",").map { word in
                DecimalText.double(DecimalText.trimmed(Array(word.utf8)[...]))
            }
        }
        guard parsed.count == 3, parsed.allSatisfy({ $0.count == 3 && !$0.contains(nil) }) else { return nil }
        rows = parsed.map { $0.compactMap(\.self) }
    }

    package var isIdentity: Bool { rows == [[1, 0, 0], [0, 1, 0], [0, 0, 1]] }

    package func turn(_ x: Double, _ y: Double, _ z: Double) -> (Double, Double, Double) {
        let turned = rows.map { $0[0] * x + $0[1] * y + $0[2] * z }
        return (turned[0], turned[1], turned[2])
    }
}
