/// What a person, or a program in his place, needs to choose an attached camera: in `downbeat-agent devices --json`.
package struct AttachedCamera: Codable, Sendable, Hashable {
    /// One size, or a range of sizes where the ends differ.
    package struct Size: Codable, Sendable, Hashable {
        package var width: Int
        package var height: Int
        /// Nil where the size is a single one.
        package var widthTo: Int?
        package var heightTo: Int?
        /// Frames a second, ascending; empty when the driver doesn't say.
        package var rates: [Double]

        package init(width: Int, height: Int, widthTo: Int? = nil, heightTo: Int? = nil, rates: [Double]) {
            self.width = width
            self.height = height
            self.widthTo = widthTo
            self.heightTo = heightTo
            self.rates = rates
        }

        private enum CodingKeys: String, CodingKey {
            case width, height, rates
            case widthTo = "width_to"
            case heightTo = "height_to"
        }
    }

    package struct Format: Codable, Sendable, Hashable {
        /// The driver's four letters.
        package var fourCC: String
        /// The word for `format` in a configuration; nil for what can't be recorded.
        package var format: String?
        package var sizes: [Size]

        package init(fourCC: String, format: String?, sizes: [Size]) {
            self.fourCC = fourCC
            self.format = format
            self.sizes = sizes
        }

        private enum CodingKeys: String, CodingKey {
            case fourCC = "fourcc"
            case format, sizes
        }
    }

    package struct Control: Codable, Sendable, Hashable {
        /// For `controls` in a configuration.
        package var name: String
        package var value: Int64?
        package var minimum: Int64
        package var maximum: Int64
        package var fallback: Int64
        /// The words of a menu's entries, by number.
        package var menu: [String: String]?
        /// It can only be read.
        package var isReadOnly: Bool
        /// An automatic control governs it now.
        package var isInactive: Bool

        package init(
            name: String, value: Int64?, minimum: Int64, maximum: Int64, fallback: Int64, menu: [String: String]?,
            isReadOnly: Bool, isInactive: Bool
        ) {
            self.name = name
            self.value = value
            self.minimum = minimum
            self.maximum = maximum
            self.fallback = fallback
            self.menu = menu
            self.isReadOnly = isReadOnly
            self.isInactive = isInactive
        }

        private enum CodingKeys: String, CodingKey {
            case name, value, menu
            case minimum = "min"
            case maximum = "max"
            case fallback = "default"
            case isReadOnly = "read_only"
            case isInactive = "inactive"
        }
    }

    package struct USB: Codable, Sendable, Hashable {
        package var bus: Int
        /// The ports from the root hub on: "1-2.3".
        package var port: String
        package var megabitsPerSecond: Double
        /// Vendor and product, as "046d:082d".
        package var id: String
        /// The device's release number.
        package var release: String?

        package init(bus: Int, port: String, megabitsPerSecond: Double, id: String, release: String?) {
            self.bus = bus
            self.port = port
            self.megabitsPerSecond = megabitsPerSecond
            self.id = id
            self.release = release
        }

        private enum CodingKeys: String, CodingKey {
            case bus, port, id, release
            case megabitsPerSecond = "mbit_per_s"
        }
    }

    /// Where it is now; another one after the next restart.
    package var node: String
    package var model: String
    package var driver: String
    package var serial: String?
    /// The driver's word for its place: stays the same while the cable stays where it is.
    package var bus: String
    /// All names that a configuration may use for it, the most stable first.
    package var names: [String]
    package var usb: USB?
    package var formats: [Format]
    package var controls: [Control]
    /// Who has it open now, in words.
    package var holders: [String]
    /// A line for `streams` in agent.json5.
    package var configuration: String?

    package init(node: String, model: String, driver: String, serial: String?, bus: String, names: [String]) {
        self.node = node
        self.model = model
        self.driver = driver
        self.serial = serial
        self.bus = bus
        self.names = names
        formats = []
        controls = []
        holders = []
    }
}
