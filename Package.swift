// swift-tools-version: 6.2
import PackageDescription

// One table of targets. The rooms and the arrows between them are described in ARCHITECTURE.md; the build refuses an
// import that is not declared here (`swift build --explicit-target-dependency-import-check error`).

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

/// A room of the product; the pure rooms can hold no unsafe code.
func room(_ name: String, _ dependencies: [Target.Dependency] = [], pure: Bool = false) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict + (pure ? [.strictMemorySafety()] : []))
}

/// A target that is arithmetic on millions of samples: optimized in debug builds too, where it is 50 times slower.
func numeric(_ name: String, _ dependencies: [Target.Dependency], path: String? = nil) -> Target {
    .target(
        name: name, dependencies: dependencies, path: path,
        swiftSettings: strict + [.unsafeFlags(["-O"], .when(configuration: .debug))])
}

/// A C library of the system.
///
/// `pkgConfig` is named only where its flags are ones that the package manager accepts.
func library(_ name: String, apt: String, pkgConfig: String? = nil) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

func command(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(
        name: name, dependencies: dependencies, path: "Sources/Commands/\(name)", swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(
        name: name, dependencies: dependencies + ["TestSupport"], path: "Tests/\(name)",
        swiftSettings: strict)
}

let package = Package(
    name: "downbeat",
    targets: [
        // C
        .target(name: "CLinux", path: "Sources/C/CLinux", cSettings: [.define("_GNU_SOURCE")]),
        library("CZMQ", apt: "libzmq3-dev"),
        library("CAvahi", apt: "libavahi-client-dev"),
        library("CALSA", apt: "libasound2-dev", pkgConfig: "alsa"),
        library("CAV", apt: "libavformat-dev libavcodec-dev libswscale-dev", pkgConfig: "libavformat"),
        library("CV4L", apt: "libv4l-dev", pkgConfig: "libv4l2"),
        library("CUdev", apt: "libudev-dev", pkgConfig: "libudev"),
        library("CCurl", apt: "libcurl4-openssl-dev", pkgConfig: "libcurl"),
        library("CMicroHTTPD", apt: "libmicrohttpd-dev", pkgConfig: "libmicrohttpd"),
        library("CSQLite", apt: "libsqlite3-dev", pkgConfig: "sqlite3"),
        library("CCrypto", apt: "libssl-dev", pkgConfig: "libcrypto"),
        library("CFFTW", apt: "libfftw3-dev"),
        library("CBlueZ", apt: "libbluetooth-dev", pkgConfig: "bluez"),

        // Pure
        room("Timing", pure: true),
        room("Protocol", ["Timing"], pure: true),
        numeric("Acoustics", ["Protocol", "Timing", "CFFTW"]),

        // Linux and the outside
        room("Platform", ["Timing", "CLinux", "CCrypto"]),
        room("Transport", ["Platform", "Protocol", "Timing", "CLinux", "CZMQ", "CAvahi", "CCrypto", "CCurl"]),
        room("Devices", ["Platform", "Protocol", "Timing", "Acoustics", "CLinux", "CALSA", "CV4L", "CUdev", "CBlueZ"]),
        room("Episode", ["Platform", "Protocol", "Timing", "CAV"]),

        // What is decided by several hosts' files together
        room("Alignment", ["Episode", "Acoustics", "Platform", "Protocol", "Timing"]),

        // The programs' insides
        room("Agent", ["Transport", "Devices", "Episode", "Acoustics", "Platform", "Protocol", "Timing"]),
        room(
            "Coordinator",
            ["Transport", "Alignment", "Episode", "Acoustics", "Platform", "Protocol", "Timing", "CSQLite"]),
        room("SyncServer", ["Alignment", "Episode", "Platform", "Protocol", "Timing", "CMicroHTTPD"]),

        command(
            "downbeat",
            ["Coordinator", "SyncServer", "Alignment", "Episode", "Transport", "Platform", "Protocol", "Timing"]),
        command("downbeat-agent", ["Agent", "Platform", "Protocol"]),

        // Measuring
        .executableTarget(
            name: "chirp-benchmark", dependencies: ["Acoustics", "AcousticScenes", "Platform", "Protocol", "Timing"],
            path: "Benchmarks/chirp-benchmark", swiftSettings: strict),

        .executableTarget(
            name: "capture-benchmark", dependencies: ["Agent", "Devices", "Episode", "Platform", "Protocol", "Timing"],
            path: "Benchmarks/capture-benchmark", swiftSettings: strict),

        // The labs' measuring end of discovery and clock; no part of the product.
        .executableTarget(
            name: "lab-peer", dependencies: ["Transport", "Platform", "Protocol", "Timing", "TestSupport"],
            path: "Tests/Lab/Peer",
            swiftSettings: strict),
        // The Bluetooth lab's: emulated gloves behind a virtual adapter, and our devices before it.
        .executableTarget(
            name: "bluetooth-lab", dependencies: ["Devices", "Platform", "Protocol", "Timing"],
            path: "Tests/Lab/Bluetooth", swiftSettings: strict),

        // Tests
        .target(
            name: "TestSupport", dependencies: ["Platform", "Timing"], path: "Tests/TestSupport", swiftSettings: strict),
        tests("TimingTests", ["Timing"]),
        tests("ProtocolTests", ["Protocol", "Timing"]),
        tests("PlatformTests", ["Platform", "Timing"]),
        numeric("AcousticScenes", ["Acoustics", "Protocol", "Timing", "TestSupport"], path: "Tests/AcousticScenes"),
        tests("AcousticsTests", ["Acoustics", "AcousticScenes", "Platform", "Protocol", "Timing"]),
        tests("TransportTests", ["Transport", "Platform", "Protocol", "Timing"]),
        tests("DevicesTests", ["Devices", "Acoustics", "Platform", "Protocol", "Timing"]),
        tests("EpisodeTests", ["Episode", "Acoustics", "AcousticScenes", "Platform", "Protocol", "Timing"]),
        tests(
            "AgentTests", ["Agent", "Acoustics", "Devices", "Episode", "Platform", "Protocol", "Timing", "Transport"]),
        tests(
            "CoordinatorTests",
            ["Coordinator", "Episode", "Platform", "Protocol", "SyncServer", "Timing", "Transport"]),
        tests(
            "AlignmentTests",
            ["Alignment", "AcousticScenes", "Acoustics", "Episode", "Platform", "Protocol", "Timing"]),
        tests("SyncServerTests", ["SyncServer", "Alignment", "Episode", "Platform", "Protocol", "Timing"]),
        tests("IntegrationTests", ["Devices", "Platform", "Protocol", "Timing", "downbeat", "downbeat-agent"]),
    ],
    swiftLanguageModes: [.v6]
)
