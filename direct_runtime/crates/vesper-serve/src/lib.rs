//! Serves nodes by HTTP: requests, answers, authentication, sockets.
