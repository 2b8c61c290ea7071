package import Timing

/// `hello`: the first message of a coordinator.
package struct Hello: Codable, Sendable, Hashable {
    package var coordinator: UniqueID
    /// For a person: the coordinator's host name.
    package var name: String
    package var version: String

    package init(coordinator: UniqueID, name: String, version: String) {
        self.coordinator = coordinator
        self.name = name
        self.version = version
    }
}

/// `welcome`: the answer to `hello`; the host's uuid decides who answered.
package struct Welcome: Codable, Sendable, Hashable {
    package var hostUUID: UniqueID
    package var host: HostID
    package var version: String
    /// UDP port of the clock echo.
    package var clockPort: UInt16
    /// TCP port of the bulk socket.
    package var bulkPort: UInt16
    /// Base64 of 32 bytes: authenticates this coordinator's clock datagrams.
    package var clockKey: String

    package init(
        hostUUID: UniqueID, host: HostID, version: String, clockPort: UInt16, bulkPort: UInt16, clockKey: String
    ) {
        self.hostUUID = hostUUID
        self.host = host
        self.version = version
        self.clockPort = clockPort
        self.bulkPort = bulkPort
        self.clockKey = clockKey
    }

    private enum CodingKeys: String, CodingKey {
        case host, version
        case hostUUID = "host_uuid"
        case clockPort = "clock_port"
        case bulkPort = "bulk_port"
        case clockKey = "clock_key"
    }
}

/// `lease`: the right to command, asked for or given back (with a zero length).
package struct LeaseRequest: Codable, Sendable, Hashable {
    package var coordinator: UniqueID
    package var name: String
    package var length: Interval

    package init(coordinator: UniqueID, name: String, length: Interval) {
        self.coordinator = coordinator
        self.name = name
        self.length = length
    }

    private enum CodingKeys: String, CodingKey {
        case coordinator, name
        case length = "length_ns"
    }
}

/// `leased`: granted until then, on the agent's clock.
///
/// Each heartbeat renews it.
package struct Lease: Codable, Sendable, Hashable {
    package var coordinator: UniqueID
    package var until: Timestamp<HostTime>

    package init(coordinator: UniqueID, until: Timestamp<HostTime>) {
        self.coordinator = coordinator
        self.until = until
    }

    private enum CodingKeys: String, CodingKey {
        case coordinator
        case until = "until_ns"
    }
}

/// A body without content.
package struct Empty: Codable, Sendable, Hashable {
    package init() {}
}

/// `deviceList`: what is attached to the host and what its configuration makes of it.
package struct DeviceList: Codable, Sendable, Hashable {
    package struct Attached: Codable, Sendable, Hashable {
        package var kind: String
        package var identity: String
        package var label: String
        /// Formats and rates, one sentence each.
        package var abilities: [String]
        /// In words: "busy: held by process 123 (cheese)".
        package var problem: String?
        /// More of a camera; nil for other kinds.
        package var camera: AttachedCamera?

        package init(kind: String, identity: String, label: String, abilities: [String], problem: String? = nil) {
            self.kind = kind
            self.identity = identity
            self.label = label
            self.abilities = abilities
            self.problem = problem
        }
    }

    package var attached: [Attached]
    package var streams: [StreamOutcome]

    package init(attached: [Attached], streams: [StreamOutcome]) {
        self.attached = attached
        self.streams = streams
    }
}

/// `refused`: the answer to anything that isn't done, with cause and cure.
package struct Refusal: Codable, Sendable, Hashable, Error, CustomStringConvertible {
    package enum Code: String, Codable, Sendable, CaseIterable {
        case malformed
        case unknownKind = "unknown_kind"
        case wrongVersion = "wrong_version"
        case notLeased = "not_leased"
        case leasedToOther = "leased_to_other"
        case invalidTransition = "invalid_transition"
        case unknownTake = "unknown_take"
        case tooLate = "too_late"
        case deviceFailed = "device_failed"
        case diskFull = "disk_full"
        case notFound = "not_found"
        case internalError = "internal_error"
    }

    package var code: Code
    package var message: String
    /// The reports of the streams, where the refusal is of an `arm`.
    package var streams: [StreamOutcome]?

    package init(_ code: Code, _ message: String, streams: [StreamOutcome]? = nil) {
        self.code = code
        self.message = message
        self.streams = streams
    }

    package var description: String { message }
}
