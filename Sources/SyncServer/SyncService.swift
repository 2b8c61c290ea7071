internal import Alignment
package import Platform

/// The built-in sync server: SyncField's HTTP interface over our own aligner.
///
/// Concurrency: the HTTP side has the threads of its library, the jobs one thread of their own.
package final class SyncService: Sendable {
    package struct Options: Sendable {
        /// A numeric IPv4 or IPv6 address.
        package var bind: String
        /// 0 lets the system choose.
        package var port: UInt16
        /// The folder that stands for /data.
        package var data: String
        /// The folder that stands for /timestamps.
        package var timestamps: String
        /// Where jobs are kept.
        package var store: String
        package var limits = UploadLimits()

        package init(bind: String = "127.0.0.1", port: UInt16 = 8080, data: String, timestamps: String, store: String) {
            self.bind = bind
            self.port = port
            self.data = data
            self.timestamps = timestamps
            self.store = store
        }
    }

    private let server: HTTPServer
    private let store: JobStore
    private let worker: JobWorker
    private let loop = EventLoop(name: "sync-stop")

    /// Listens, and takes up the jobs that an earlier run left.
    ///
    /// - Throws: `SystemError`, with the address or the path in it.
    package convenience init(_ options: Options) throws(SystemError) {
        try self.init(options, aligner: .standard)
    }

    init(_ options: Options, aligner: Aligner) throws(SystemError) {
        for folder in [options.data, options.timestamps] where !Files.isFolder(folder) {
            throw SystemError(.noSuchFile, "opening the folder \(folder)")
        }
        let store = try JobStore(folder: options.store)
        let worker = JobWorker(store: store, aligner: aligner)
        let routes = SyncRoutes(
            store: store, folders: MountedFolders(data: options.data, timestamps: options.timestamps),
            limits: options.limits, submit: { worker.submit($0) })
        server = try HTTPServer(address: options.bind, port: options.port, handler: routes)
        self.store = store
        self.worker = worker
        for id in store.unfinished { worker.submit(id) }
    }

    /// The port that is listened on.
    package var port: UInt16 { server.port }

    /// Closes the connections, ends the running job at its next step, and returns when all threads are idle.
    package func stop() async {
        // It waits for the connections' threads, so it has a thread to wait on.
        try? await loop.run { [server] in server.stop() }
        loop.stop()
        await worker.stop()
        store.unlock()
    }
}
